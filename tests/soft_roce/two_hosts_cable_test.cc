// Rank 0 and rank 1 on two hosts, and what happens to the cable between these.
#include <functional>

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

  static void cut() { fault("cut"); }

  // What this host's rank fails with when `harm` was done to the ends: known in
  // time, with a cause that is no deadline's.
  void expectKnown(const Job::Body& body, const std::function<void()>& harm) {
    Job job(options(1), body);
    job.go();
    job.group().expectAll("now");
    meet("busy");
    const auto start = now();
    harm();
    // Which may be longer than all that follows, on a busy guest.
    const auto took = now() - start;
    const Failure failure = job.failure(0, std::chrono::seconds(40));
    EXPECT_NE(failure.type, "none");
    EXPECT_NE(failure.type, "other") << failure.text;
    EXPECT_NE(failure.type, "Timeout") << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", 1 - hosts().own)))
        << failure.text;
    job.group().joinAll();
    repair();
    EXPECT_LT(failure.at - start - longest("took", took), kCutIsKnown)
        << failure.text << " ("
        << std::chrono::duration<double>(failure.at - start).count()
        << " s after the guests had met)";
  }
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

TEST_F(TwoHostsCableTest, IsCut) { expectKnown(&exchangeOn, &cut); }

TEST_F(TwoHostsCableTest, IsCutWhileRank0OnlyReceives) {
  expectKnown(receiveOn(0, true), &cut);
}

TEST_F(TwoHostsCableTest, IsCutWhileRank1OnlyReceives) {
  expectKnown(receiveOn(1, true), &cut);
}

TEST_F(TwoHostsCableTest, IsCutWhileBothOnlyReceive) {
  expectKnown(receiveOn(0, false), &cut);
}

TEST_F(TwoHostsCableTest, ThePortOfOneGoesDown) {
  expectKnown(&exchangeOn, [] {
    if (hosts().own == 1) {
      takeDown("eth0");
    }
  });
}

TEST_F(TwoHostsCableTest, IsUnpluggedForASecond) {
  meet("quiet");
  const int64_t before = missingOf({"rxe0"});
  SharedFlag over;
  Job job(options(1),
          [&](Child& child, const std::shared_ptr<Context>& context) {
            exchange(*context, 0, 50000);
            child.say("now");
            exchangeUntil(over, *context, 1000);
            child.say("quiet");
            child.hear();
          });
  job.go();
  job.group().expectAll("now");
  meet("busy");
  fault("unplug 1");
  over.set();
  job.group().expectAll("quiet");
  meet("quiet again");
  // What one guest has sent and the other one has not received, up to here:
  // what is for a queue pair that has ended is not counted as received.
  const int64_t lost = missingOf({"rxe0"}) - before;
  EXPECT_GT(lost + others("lost", lost), 0);
  job.group().tellAll("end");
  const Failure failure = job.failure(0, std::chrono::seconds(20));
  EXPECT_EQ(failure.type, "none") << failure.text;
  job.group().joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
