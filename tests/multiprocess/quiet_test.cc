// What a context must not cost: CPU while idle, memory in steady state.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <string>
#include <vector>

#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_ring_chunked.h"
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
// looks before it sleeps, for which a long wait would leave too much room. (In
// a guest those take several times as long as elsewhere: so does the wait.)
TEST(QuietTest, ALongWaitUsesLittleCpu) {
  const int guest = patience() / slowness();
  Job::Options options;
  options.size = 2;
  Job job(options, [=](Child& child, const std::shared_ptr<Context>& context) {
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
  ::usleep(150000 * patience() * guest);  // is measured
  job.group().tell(0, "go on");
  job.group().joinAll();
}

// To register memory with a device allocates as well, in its library.
class AllocationTest : public ::testing::TestWithParam<size_t> {
 protected:
  // `operations` are repeated, with a peer who does the same.
  static void expectNone(int times, const std::function<void()>& operations) {
    const auto repeat = [&](int repetitions) {
      for (int i = 0; i < repetitions * times; i++) {
        operations();
      }
    };
    repeat(10);
    const uint64_t before = allocations();
    repeat(5);
    EXPECT_EQ(allocations() - before, 0u);
    repeat(1);  // the other one may still be counting
  }
};

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
          bool receivesFirst = false;
          expectNone(100, [&] {
            receivesFirst = !receivesFirst;
            if (receivesFirst) {
              recv->recv(peer, 5);
              send->send(peer, 5);
            } else {
              send->send(peer, 5);
              recv->recv(peer, 5);
            }
            recv->waitRecv();
            send->waitSend();
          });
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
          expectNone(100, [&] {
            send->send();
            recv->waitRecv();
            send->waitSend();
          });
        });
}

TEST_P(AllocationTest, PutsAndGetsInSteadyState) {
  const size_t size = GetParam();
  std::array<std::string, 2> keys;
  std::barrier together(2);
  spawn(Mode::kThreads, chosenTransport().make, 2,
        [&](const std::shared_ptr<transport::Context>& context) {
          std::vector<char> exported(size);
          std::vector<char> local(size);
          auto target = context->createUnboundBuffer(exported.data(), size);
          auto own = context->createUnboundBuffer(local.data(), size);
          keys[context->rank] = target->getRemoteKey()->serialize();
          together.arrive_and_wait();
          auto key = context->deserializeRemoteKey(keys[1 - context->rank]);
          expectNone(20, [&] {
            own->put(*key, 5, 0, 0, size);
            own->waitSend();
            own->get(*key, 5, 0, 0, size);
            own->waitSend();
            together.arrive_and_wait();  // so that both count at once
          });
        });
}

TEST_P(AllocationTest, AlgorithmObjectsInSteadyState) {
  const int count = static_cast<int>(GetParam() / sizeof(float));
  spawnContexts(
      Mode::kThreads, chosenTransport().make, 2,
      [&](const std::shared_ptr<Context>& context) {
        std::vector<float> data(GetParam() / sizeof(float));
        AllreduceHalvingDoubling<float> halving(context, {data.data()}, count);
        AllreduceRingChunked<float> chunked(context, {data.data()}, count);
        expectNone(10, [&] {
          halving.run();
          chunked.run();
        });
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
