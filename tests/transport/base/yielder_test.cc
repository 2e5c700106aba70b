// A waiter that has neighbours on its core: real threads, bound to one core.
#include "transport/base/yielder.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
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

// How many yields it takes until sleep is better; -1: it never is.
int yieldsUntilSleep(Yielder& yielder) {
  constexpr int kMany = 100000;
  for (int i = 0; i < kMany; i++) {
    const auto now = Clock::now();
    if (yielder.shouldSleep(now)) {
      return i;
    }
    yielder.yield(now);
  }
  return -1;
}

TEST(YielderTest, SleepsBesideWhoComputes) {
  Neighbour neighbour([] {});
  Yielder yielder;
  EXPECT_GE(yieldsUntilSleep(yielder), 1);
}

TEST(YielderTest, SleepsOnceBesideWhoYieldsToo) {
  Neighbour neighbour([] { sched_yield(); });
  Yielder yielder;
  EXPECT_GE(yieldsUntilSleep(yielder), 1);
  // Not for long: giving the core away does serve such a neighbour.
  const auto start = Clock::now();
  while (yielder.shouldSleep(Clock::now())) {
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
}

// Alone on its core, which nobody else wants for long.
TEST(YielderTest, IsPatientWhereNobodyWantsTheCore) {
  Yielder yielder;
  const auto atFirst = yielder.patience();
  auto most = atFirst;
  for (int i = 0; i < 100000 && most < 16 * atFirst; i++) {
    yielder.yield(Clock::now());
    EXPECT_LE(yielder.patience(), 2 * most);
    most = std::max(most, yielder.patience());
  }
  EXPECT_EQ(most, 16 * atFirst);
}

TEST(YielderTest, IsImpatientBesideWhoYieldsToo) {
  Neighbour neighbour([] { sched_yield(); });
  Yielder yielder;
  const auto atFirst = yielder.patience();
  int impatient = 0;
  for (int i = 0; i < 1000; i++) {
    yielder.yield(Clock::now());
    impatient += yielder.patience() == atFirst ? 1 : 0;
  }
  EXPECT_GT(impatient, 0);
}

TEST(YielderTest, AtFirstYields) {
  EXPECT_FALSE(Yielder().shouldSleep(Clock::now()));
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
