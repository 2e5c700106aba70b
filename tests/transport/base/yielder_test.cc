// A waiter that has neighbours on its core: real threads, bound to one core.
#include "transport/base/yielder.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using Clock = Yielder::Clock;

// Runs `neighbour` again and again on the core of the calling thread.
class Neighbour {
 public:
  explicit Neighbour(const std::function<void()>& neighbour) {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    thread_ = std::thread([this, neighbour] {  // it inherits the core
      while (!stop_) {
        neighbour();
      }
    });
  }
  ~Neighbour() {
    stop_ = true;
    thread_.join();
    sched_setaffinity(0, sizeof(before_), &before_);
  }

 private:
  cpu_set_t before_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

constexpr std::chrono::milliseconds kLong{1};

// How many yields it takes until sleep is better, at least for who has waited
// long; -1: it never is.
int yieldsUntilSleep(Yielder& yielder, CoreSpread& spread) {
  constexpr int kMany = 100000;
  for (int i = 0; i < kMany; i++) {
    const auto now = Clock::now();
    if (yielder.shouldSleep(now - kLong, now)) {
      return i;
    }
    yielder.yield(now, spread);
  }
  return -1;
}

TEST(YielderTest, SleepsBesideWhoComputes) {
  Neighbour neighbour([] {});
  Yielder yielder;
  CoreSpread spread;
  EXPECT_GE(yieldsUntilSleep(yielder, spread), 1);
}

TEST(YielderTest, LooksForAWhileBeforeItSleeps) {
  Neighbour neighbour([] {});
  Yielder yielder;
  CoreSpread spread;
  bool found = false;
  const auto end = Clock::now() + std::chrono::seconds(10);
  while (!found && Clock::now() < end) {
    ASSERT_GE(yieldsUntilSleep(yielder, spread), 0);
    const auto now = Clock::now();
    found =
        yielder.shouldSleep(now - kLong, now) && !yielder.shouldSleep(now, now);
  }
  EXPECT_TRUE(found);
}

// Both that computes and that yields.
TEST(YielderTest, BesideANeighbourGoesWhereItBelongs) {
  for (const bool computes : {true, false}) {
    Neighbour neighbour([computes] { computes ? 0 : sched_yield(); });
    Yielder yielder;
    CoreSpread spread;
    spread.setRanks(0, 1);
    const auto start = Clock::now();
    EXPECT_GE(yieldsUntilSleep(yielder, spread), 1);
    EXPECT_FALSE(spread.look(start)) << "it has not looked yet";
  }
}

TEST(YielderTest, SleepsOnceBesideWhoYieldsToo) {
  Neighbour neighbour([] { sched_yield(); });
  Yielder yielder;
  CoreSpread spread;
  EXPECT_GE(yieldsUntilSleep(yielder, spread), 1);
  // Not for long: giving the core away does serve such a neighbour.
  const auto start = Clock::now();
  for (auto now = start; yielder.shouldSleep(now - kLong, now);
       now = Clock::now()) {
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
}

// Alone on its core, which nobody else wants for long.
TEST(YielderTest, IsPatientWhereNobodyWantsTheCore) {
  Yielder yielder;
  CoreSpread spread;
  const auto atFirst = yielder.patience();
  auto most = atFirst;
  // A neighbour that comes by costs time, not only yields.
  const auto end = Clock::now() + std::chrono::seconds(20);
  while (most < 16 * atFirst && Clock::now() < end) {
    yielder.yield(Clock::now(), spread);
    EXPECT_LE(yielder.patience(), 2 * most);
    most = std::max(most, yielder.patience());
  }
  EXPECT_EQ(most, 16 * atFirst);
}

TEST(YielderTest, IsImpatientBesideWhoYieldsToo) {
  Neighbour neighbour([] { sched_yield(); });
  Yielder yielder;
  CoreSpread spread;
  const auto atFirst = yielder.patience();
  int impatient = 0;
  for (int i = 0; i < 1000; i++) {
    yielder.yield(Clock::now(), spread);
    impatient += yielder.patience() == atFirst ? 1 : 0;
  }
  EXPECT_GT(impatient, 0);
}

TEST(YielderTest, AtFirstYields) {
  const auto now = Clock::now();
  EXPECT_FALSE(Yielder().shouldSleep(now - kLong, now));
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
