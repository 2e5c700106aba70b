// Rank 0 and rank 1 on two hosts, and what happens to the cable between these.
#include <sys/mman.h>

#include <atomic>

#include "tests/soft_roce/cable.h"
#include "tests/soft_roce/two_hosts.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class TwoHostsCableTest : public TwoHostsTest {
 protected:
  // The fault of one test is not the next one's.
  void TearDown() override { repair(); }

  static void repair() {
    fault("heal");
    fault("up eth0");
  }

  // What this host's rank fails with when `what` has happened ("": nothing to
  // this host's end): known in time, with a cause that is no deadline's.
  void expectKnown(const Job::Body& body, const std::string& what) {
    Job job(options(1), body);
    job.go();
    job.group().expectAll("now");
    meet("busy");
    const auto start = now();
    if (!what.empty()) {
      fault(what);
    }
    const auto done = now();
    const Failure failure = job.failure(0, std::chrono::seconds(40));
    EXPECT_NE(failure.type, "none");
    EXPECT_NE(failure.type, "other") << failure.text;
    EXPECT_NE(failure.type, "Timeout") << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", 1 - hosts().own)))
        << failure.text;
    EXPECT_LT(failure.at - start, kCutIsKnown)
        << failure.text << " ('" << what << "' took "
        << std::chrono::duration<double>(done - start).count() << " s)";
    job.group().joinAll();
    repair();
    meet("repaired");
  }

  // `what` happens to this host's end while the ranks exchange messages, and
  // all of these arrive.
  void expectNoError(const std::string& what);
};

void exchangeOn(Child& child, const std::shared_ptr<Context>& context) {
  exchange(*context, 0, 50000);
  child.say("now");
  for (uint64_t i = 1;; i++) {
    exchange(*context, i, i % 2 == 0 ? 100 : 50000);
  }
}

// Rank `receiver` waits for what never comes. The other one does so too, or
// sends.
Job::Body receiveOn(int receiver, bool otherSends) {
  return [=](Child& child, const std::shared_ptr<Context>& context) {
    exchange(*context, 0, 50000);
    child.say("now");
    const int peer = 1 - context->rank;
    if (context->rank == receiver || !otherSends) {
      recvFrom(*context, peer, 2, 50000);
      return;
    }
    for (;;) {
      sendTo(*context, peer, 1, 100);
    }
  };
}

TEST_F(TwoHostsCableTest, IsCut) { expectKnown(&exchangeOn, "cut"); }

TEST_F(TwoHostsCableTest, IsCutWhileRank0OnlyReceives) {
  expectKnown(receiveOn(0, true), "cut");
}

TEST_F(TwoHostsCableTest, IsCutWhileRank1OnlyReceives) {
  expectKnown(receiveOn(1, true), "cut");
}

TEST_F(TwoHostsCableTest, IsCutWhileBothOnlyReceive) {
  expectKnown(receiveOn(0, false), "cut");
}

TEST_F(TwoHostsCableTest, ThePortOfOneGoesDown) {
  expectKnown(&exchangeOn, hosts().own == 1 ? "down eth0" : "");
}

// Both end after the round in which both have said that they may.
void exchangeUntil(const std::atomic<bool>& over, Context& context) {
  char out = 0;
  char in = 0;
  auto send = context.createUnboundBuffer(&out, 1);
  auto recv = context.createUnboundBuffer(&in, 1);
  for (uint64_t i = 1; out == 0 || in == 0; i++) {
    exchange(context, 2 * i, 1000);
    out = over ? 1 : 0;
    send->send(1 - context.rank, 2 * i + 1);
    recv->recv(1 - context.rank, 2 * i + 1);
    recv->waitRecv();
    send->waitSend();
  }
}

TEST_F(TwoHostsCableTest, IsUnpluggedForASecond) {
  // Shared with the rank's process.
  auto& over = *static_cast<std::atomic<bool>*>(
      ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Job job(options(1),
          [&](Child& child, const std::shared_ptr<Context>& context) {
            exchange(*context, 0, 50000);
            child.say("now");
            exchangeUntil(over, *context);
          });
  job.go();
  job.group().expectAll("now");
  meet("busy");
  fault("unplug 1");
  over = true;
  const Failure failure = job.failure(0, std::chrono::seconds(20));
  EXPECT_EQ(failure.type, "none") << failure.text;
  job.group().joinAll();
  ::munmap(&over, sizeof(over));
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
