// Waits whose time is up.
#include <gtest/gtest.h>

#include <thread>

#include "tests/transport/base/fake_poller.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using std::chrono::milliseconds;
using Manner = ProgressDomain::Manner;
using Clock = Deadline::Clock;

// Has `messages`, one in each round, which are there when all this process's
// threads have been stopped until `from`.
class LatePoller : public Poller {
 public:
  LatePoller(Clock::time_point from, int messages)
      : from_(from), left_(messages) {}

  bool poll() override {
    const bool moves = left_ > 0 && Clock::now() >= from_;
    left_ -= moves ? 1 : 0;
    return moves;
  }
  int wakeFd() const override { return -1; }
  int left() const { return left_; }

 private:
  const Clock::time_point from_;
  int left_;
};

class LastLookTest : public ::testing::TestWithParam<Manner> {};

// Both the one that drives and one that sleeps meanwhile.
TEST_P(LastLookTest, SeesWhatHasComeByTheDeadline) {
  for (const bool another : {false, true}) {
    const auto end = Clock::now() + milliseconds(50);
    LatePoller late(end, 3);
    ProgressDomain domain;
    bool over = false;
    std::thread driver;
    if (another) {
      driver = std::thread([&] {
        auto lock = domain.lock();
        EXPECT_TRUE(domain.wait(
            lock, [&] { return over; }, never()));
      });
      EXPECT_TRUE(eventually([&] {
        const auto lock = domain.lock();
        return domain.counters().blockingWaits > 0;
      }));
    }
    {
      auto lock = domain.lock();
      domain.add(late);
      EXPECT_TRUE(domain.wait(
          lock, [&] { return late.left() == 0; }, Deadline(end), GetParam()));
      domain.remove(late);
      over = true;
      domain.changed();
    }
    if (driver.joinable()) {
      driver.join();
    }
  }
}

// What goes on coming is no reason to wait for ever.
TEST_P(LastLookTest, IsOverWhereThereIsAlwaysMore) {
  LatePoller endless(Clock::now(), 1 << 30);
  ProgressDomain domain;
  auto lock = domain.lock();
  domain.add(endless);
  EXPECT_FALSE(domain.wait(
      lock, [] { return false; }, Deadline(Clock::now()), GetParam()));
  domain.remove(endless);
}

// The difference to the time now would be too large.
TEST_P(LastLookTest, ComesAtOnceForADeadlineBeforeAllTimes) {
  ProgressDomain domain;
  auto lock = domain.lock();
  EXPECT_FALSE(domain.wait(
      lock, [] { return false; }, Deadline(Clock::time_point::min()),
      GetParam()));
}

INSTANTIATE_TEST_SUITE_P(, LastLookTest,
                         ::testing::Values(Manner::kSpin, Manner::kSleep),
                         [](const auto& info) {
                           return info.param == Manner::kSpin ? "spin"
                                                              : "sleep";
                         });

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
