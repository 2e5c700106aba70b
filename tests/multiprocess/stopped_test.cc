// A process is stopped: that is not death. The error comes at the deadline and
// says whom it was waiting for.
#include <gtest/gtest.h>
#include <signal.h>

#include "gloo/common/string.h"
#include "tests/multiprocess/job.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr int kVictim = 1;

void stopWhile(const Job::Body& others) {
  Job::Options options;
  options.timeout = std::chrono::milliseconds(1000);
  Job job(options, [&](Child& child, const std::shared_ptr<Context>& context) {
    if (child.rank == kVictim) {
      child.say("now");
      child.hear();
    } else {
      child.hear();
      others(child, context);
    }
  });
  job.go();
  job.group().expect(kVictim, "now");
  job.group().signal(kVictim, SIGSTOP);
  const auto stopped = now();
  job.group().tell(0, "stopped");
  job.group().tell(2, "stopped");
  for (const int rank : {0, 2}) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "Timeout") << failure.text;
    EXPECT_TRUE(failure.names("Timed out")) << failure.text;
    EXPECT_TRUE(failure.names("rank 1")) << failure.text;
    EXPECT_TRUE(failure.names(MakeString("rank ", rank))) << failure.text;
    EXPECT_LT(failure.at - stopped, std::chrono::seconds(2) * slowness());
    EXPECT_GT(failure.at - stopped, std::chrono::milliseconds(900));
  }
  // Also the destructors of the others end in time.
  for (const int rank : {0, 2}) {
    const Outcome outcome = job.group().join(rank, std::chrono::seconds(4));
    EXPECT_TRUE(outcome.exitedWith(0)) << outcome.str();
  }
  job.group().signal(kVictim, SIGKILL);
}

TEST(StoppedTest, WhileOthersReceiveFromIt) {
  stopWhile([](Child&, const std::shared_ptr<Context>& context) {
    recvFrom(*context, kVictim, 1, 100);
  });
}

TEST(StoppedTest, WhileOthersSendToIt) {
  stopWhile([](Child&, const std::shared_ptr<Context>& context) {
    // More than any socket takes, and little enough to be written quickly.
    sendTo(*context, kVictim, 1, 16 << 20);
  });
}

// A rank that comes back after a pause shorter than the deadline was only slow.
TEST(StoppedTest, AndGoesOnInTime) {
  Job::Options options;
  options.size = 2;
  options.timeout = std::chrono::seconds(20);
  Job job(options, [](Child& child, const std::shared_ptr<Context>& context) {
    for (int i = 0; i < 50; i++) {
      exchangeRing(*context, i, 300000);
      if (i == 10) {
        child.say("now");
      }
    }
  });
  job.go();
  job.group().expect(1, "now");
  job.group().signal(1, SIGSTOP);
  job.group().expect(0, "now");
  job.group().signal(1, SIGCONT);
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "none") << failure.text;
  }
  job.group().joinAll();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
