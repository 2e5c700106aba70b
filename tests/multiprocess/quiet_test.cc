// What a context must not cost: CPU while idle, memory in steady state.
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "gloo/rendezvous/context.h"
#include "tests/multiprocess/job.h"
#include "tests/support/transports.h"
#include "tests/support/usage.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;

TEST(QuietTest, AnIdleContextUsesNoCpu) {
  Job::Options options;
  options.size = 4;
  Job job(options, [](Child& child, const std::shared_ptr<Context>& context) {
    exchangeRing(*context, 1, 1000);
    child.say("idle");
    child.hear();  // lets everything settle: the parent waits for all
    ::usleep(50000);
    const auto before = cpuTime();
    ::usleep(500000);
    const auto used = cpuTime() - before;
    // (A guest takes some 40 times longer for the same.)
    EXPECT_LT(used, milliseconds(2) * slowness() * patience() * patience());
  });
  job.go();
  job.group().expectAll("idle");
  job.group().tellAll("go on");
  job.group().joinAll();
}

// Also while a thread waits for a peer that takes its time: all of it, with the
// looks before it sleeps.
TEST(QuietTest, ALongWaitUsesLittleCpu) {
  Job::Options options;
  options.size = 2;
  Job job(options, [](Child& child, const std::shared_ptr<Context>& context) {
    if (child.rank == 0) {
      child.hear();
      sendTo(*context, 1, 1, 8);
      return;
    }
    child.say("waits");
    EXPECT_LT(coreShareOf([&] { recvFrom(*context, 0, 1, 8); }),
              0.02 * slowness());
  });
  job.go();
  job.group().expect(1, "waits");
  ::usleep(2000000);  // is measured
  job.group().tell(0, "go on");
  job.group().joinAll();
}

class AllocationTest : public ::testing::TestWithParam<size_t> {};

// Two ranks in this process, so that all of it is counted.
TEST_P(AllocationTest, SendAndReceiveInSteadyState) {
  const size_t size = GetParam();
  spawn(Mode::kThreads, chosenTransport().make, 2,
        [&](const std::shared_ptr<transport::Context>& context) {
          const int peer = 1 - context->rank;
          std::vector<char> out(size);
          std::vector<char> in(size);
          auto send = context->createUnboundBuffer(out.data(), size);
          auto recv = context->createUnboundBuffer(in.data(), size);
          const auto round = [&] {
            for (int i = 0; i < 100; i++) {
              if (i % 2 == 0) {
                recv->recv(peer, 5);
                send->send(peer, 5);
              } else {
                send->send(peer, 5);
                recv->recv(peer, 5);
              }
              recv->waitRecv();
              send->waitSend();
            }
          };
          for (int i = 0; i < 10; i++) {
            round();
          }
          const uint64_t before = allocations();
          for (int i = 0; i < 5; i++) {
            round();
          }
          EXPECT_EQ(allocations() - before, 0u) << "rank " << context->rank;
          round();  // the other one may still be counting
        });
}

TEST_P(AllocationTest, BoundBuffersInSteadyState) {
  const size_t size = GetParam();
  spawn(Mode::kThreads, chosenTransport().make, 2,
        [&](const std::shared_ptr<transport::Context>& context) {
          auto& pair = context->getPair(1 - context->rank);
          std::vector<char> out(size);
          std::vector<char> in(size);
          auto recv = pair->createRecvBuffer(1, in.data(), size);
          auto send = pair->createSendBuffer(1, out.data(), size);
          const auto round = [&] {
            for (int i = 0; i < 100; i++) {
              send->send();
              recv->waitRecv();
              send->waitSend();
            }
          };
          for (int i = 0; i < 10; i++) {
            round();
          }
          const uint64_t before = allocations();
          for (int i = 0; i < 5; i++) {
            round();
          }
          EXPECT_EQ(allocations() - before, 0u) << "rank " << context->rank;
          round();
        });
}

INSTANTIATE_TEST_SUITE_P(Bytes, AllocationTest,
                         ::testing::Values(8, 4096, 100000, 2 << 20));

// The counter itself counts.
TEST(QuietTest, AllocationsAreCounted) {
  const uint64_t before = allocations();
  const std::vector<char> some(100);
  EXPECT_EQ(some.size(), 100u);
  EXPECT_GE(allocations() - before, 1u);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
