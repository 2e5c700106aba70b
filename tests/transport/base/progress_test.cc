#include "transport/base/progress.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "gloo/common/error.h"
#include "tests/support/process_group.h"
#include "tests/support/usage.h"
#include "tests/transport/base/fake_poller.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline soon() { return Deadline::after(milliseconds(20)); }

// Each of its stack's bytes would need an address.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attributes = before_;
    pthread_attr_setstacksize(&attributes, size_t{1} << 50);
    pthread_setattr_default_np(&attributes);
  }
  ~NoThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_{};
};

TEST(ProgressDomainTest, WithoutAThreadItSaysWhatToRaise) {
  const NoThreads none;
  std::string text;
  try {
    ProgressDomain domain;
  } catch (const IoException& e) {
    text = e.what();
  }
  EXPECT_NE(text.find("ulimit -u"), std::string::npos) << text;
}

class ProgressTest : public ::testing::TestWithParam<Tells> {
 protected:
  ProgressTest() : poller_(GetParam()) {
    const auto lock = domain_.lock();
    domain_.add(poller_);
  }
  ~ProgressTest() override {
    const auto lock = domain_.lock();
    domain_.remove(poller_);
  }

  bool waitFor(int taken, Deadline deadline) {
    auto lock = domain_.lock();
    return domain_.wait(
        lock, [&] { return poller_.taken >= taken; }, deadline);
  }

  // The background thread does it, soon.
  bool isTaken(int taken) {
    return eventually([&] { return poller_.taken >= taken; });
  }

  ProgressDomain domain_;
  FakePoller poller_;
};

TEST_P(ProgressTest, WaitReturnsAtOnceWhenReady) {
  auto lock = domain_.lock();
  EXPECT_TRUE(domain_.wait(
      lock, [] { return true; }, Deadline()));
  EXPECT_TRUE(lock.owns_lock());
}

TEST_P(ProgressTest, WaitGivesUpAtTheDeadline) {
  const auto start = Deadline::Clock::now();
  EXPECT_FALSE(waitFor(1, soon()));
  EXPECT_GE(Deadline::Clock::now() - start, milliseconds(20));
}

TEST_P(ProgressTest, ExpiredDeadlineStillPollsOnce) {
  poller_.arrive();
  EXPECT_TRUE(waitFor(1, Deadline(Deadline::Clock::now())));
}

TEST_P(ProgressTest, ArrivalWakesABlockedDriver) {
  for (int i = 1; i <= 50; i++) {
    std::thread peer([&] {
      // until the driver sleeps in the kernel
      EXPECT_TRUE(eventually([&] {
        const auto lock = domain_.lock();
        return domain_.counters().blockingWaits >= uint64_t(i);
      }));
      poller_.arrive();
    });
    const bool woken = waitFor(i, never());
    peer.join();
    ASSERT_TRUE(woken) << i;
  }
}

TEST_P(ProgressTest, BackgroundThreadTakesWhatNobodyWaitsFor) {
  for (int i = 1; i <= 200; i++) {
    poller_.arrive();
    ASSERT_TRUE(isTaken(i)) << i;
  }
}

// A waiter drives while the background thread sleeps armed; what arrives after
// that waiter has left must still be seen.
TEST_P(ProgressTest, BackgroundThreadTakesOverFromADriver) {
  for (int i = 1; i <= 50; i++) {
    std::thread peer([&] { poller_.arrive(); });
    const bool woken = waitFor(2 * i - 1, never());
    peer.join();
    ASSERT_TRUE(woken) << i;
    poller_.arrive();
    ASSERT_TRUE(isTaken(2 * i)) << i;
  }
}

TEST_P(ProgressTest, ChangedEndsTheWaitOfADriver) {
  for (int i = 0; i < 300; i++) {
    bool flag = false;
    std::thread other([&] {
      const auto lock = domain_.lock();
      flag = true;
      domain_.changed();
    });
    auto lock = domain_.lock();
    const bool ended = domain_.wait(
        lock, [&] { return flag; }, never());
    lock.unlock();
    other.join();
    ASSERT_TRUE(ended) << i;
  }
}

// A thread that does not poll ends what others wait for: the one that drives,
// and those that sleep meanwhile.
TEST_P(ProgressTest, TouchedEndsTheWaitsThatAreOver) {
  for (int i = 0; i < 100; i++) {
    std::array<bool, 3> flags{};
    std::atomic<int> ended{0};
    std::vector<std::thread> waiters;
    for (const bool& flag : flags) {
      waiters.emplace_back([&] {
        auto lock = domain_.lock();
        const ProgressDomain::Ready ready = [&flag] { return flag; };
        ended +=
            domain_.wait(lock, ready, Deadline::after(seconds(20))) ? 1 : 0;
      });
    }
    const auto asleep = [&] {
      const auto lock = domain_.lock();
      const auto counters = domain_.counters();
      return counters.sleeps >= 2 * static_cast<uint64_t>(i + 1);
    };
    EXPECT_TRUE(eventually(asleep));
    for (size_t k = 0; k < flags.size(); k++) {
      {
        const auto lock = domain_.lock();
        flags[(k + static_cast<size_t>(i)) % flags.size()] = true;
        domain_.touched();
      }
      EXPECT_TRUE(eventually([&] { return ended == static_cast<int>(k) + 1; }))
          << i << ", " << k;
    }
    for (std::thread& waiter : waiters) {
      waiter.join();
    }
  }
}

TEST_P(ProgressTest, TouchedWakesNobodyElse) {
  bool flag = false;
  std::thread waiter([&] {
    auto lock = domain_.lock();
    EXPECT_TRUE(domain_.wait(
        lock, [&] { return flag; }, never()));
  });
  const auto waits = [&] {
    const auto lock = domain_.lock();
    return domain_.counters().blockingWaits;
  };
  EXPECT_TRUE(eventually([&] { return waits() > 0; }));
  const uint64_t before = waits();
  for (int i = 0; i < 1000; i++) {
    const auto lock = domain_.lock();
    domain_.touched();
  }
  // (It may have slept on words until now, and gone on in epoll.)
  EXPECT_LE(waits(), before + 1);
  {
    const auto lock = domain_.lock();
    flag = true;
    domain_.touched();
  }
  waiter.join();
}

TEST_P(ProgressTest, EveryWaiterReturnsWhateverTheOrder) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 100;
  std::atomic<int> next{1};
  std::atomic<int> returned{0};
  std::vector<std::thread> waiters;
  for (int t = 0; t < kThreads; t++) {
    waiters.emplace_back([&] {
      for (int i = 0; i < kRounds; i++) {
        EXPECT_TRUE(waitFor(next.fetch_add(1), never()));
        returned++;
      }
    });
  }
  for (int i = 0; i < kThreads * kRounds; i++) {
    poller_.arrive();
    EXPECT_TRUE(eventually([&] { return returned >= i - kThreads; })) << i;
  }
  for (std::thread& waiter : waiters) {
    waiter.join();
  }
  EXPECT_EQ(returned, kThreads * kRounds);
}

TEST_P(ProgressTest, ASleeperWhoseDeadlinePassesReturns) {
  bool over = false;
  std::thread driver([&] {
    auto lock = domain_.lock();
    EXPECT_TRUE(domain_.wait(
        lock, [&] { return over; }, never()));
  });
  EXPECT_FALSE(waitFor(1, soon()));
  EXPECT_FALSE(waitFor(1, soon()));
  {
    const auto lock = domain_.lock();
    over = true;
    domain_.changed();
  }
  driver.join();
}

TEST_P(ProgressTest, TimersOfPollersAreKept) {
  {
    const auto lock = domain_.lock();
    poller_.timer = milliseconds(5);
    domain_.changed();
  }
  const int before = poller_.polls;
  EXPECT_TRUE(eventually([&] { return poller_.polls >= before + 20; }));
}

TEST_P(ProgressTest, SpinningDoesNotArm) {
  domain_.setBusyPoll(true);
  EXPECT_FALSE(waitFor(1, soon()));  // the background thread lies down
  const int before = poller_.arms;
  EXPECT_FALSE(waitFor(1, soon()));
  EXPECT_LE(poller_.arms - before, 1);
  const auto lock = domain_.lock();
  EXPECT_EQ(domain_.counters().blockingWaits, 0u);
}

// One that has the lock all the time but when it finds done what it waits for.
// Nor does the background thread arm: it would be woken by each message of that
// thread's. (Unless others have the core for milliseconds while the lock is
// free: then nobody seems to be at work.)
TEST_P(ProgressTest, AThreadThatNeverPollsLetsTheBackgroundThreadIn) {
  auto lock = domain_.lock();
  EXPECT_TRUE(eventually([&] {
    const int arms = poller_.arms;
    for (int i = 1; i <= 3; i++) {
      const int taken = poller_.taken;
      poller_.arrive();
      EXPECT_TRUE(eventually([&] {
        const auto until = Deadline::Clock::now() + milliseconds(1);
        while (Deadline::Clock::now() < until) {
        }
        domain_.finds(lock, [] { return true; });
        return poller_.taken == taken + 1;
      })) << i;
    }
    return poller_.arms == arms;
  }));
}

// Who was let in may have taken what was found.
TEST_P(ProgressTest, WhatIsFoundIsLookedAtAgainAfterGivingWay) {
  auto lock = domain_.lock();
  poller_.arrive();
  const auto isThere = [&] { return poller_.taken == 0; };
  EXPECT_TRUE(eventually([&] {
    const bool found = domain_.finds(lock, isThere);
    EXPECT_EQ(found, isThere());
    return !found;
  }));
}

TEST_P(ProgressTest, ALongWaitSleeps) {
  const auto before = test::cpuTime();
  EXPECT_FALSE(waitFor(1, Deadline::after(milliseconds(300))));
  EXPECT_LT(test::cpuTime() - before, milliseconds(100) * test::slowness());
}

TEST_P(ProgressTest, AnIdleDomainUsesNoCpu) {
  EXPECT_FALSE(waitFor(1, soon()));
  // Settles: no thread drives, the background thread sleeps in the kernel.
  int polls = -1;
  while (polls != poller_.polls) {
    polls = poller_.polls;
    ::usleep(20000);
  }
  const auto before = test::cpuTime();
  ::usleep(300000);
  EXPECT_LT(test::cpuTime() - before, milliseconds(3));
  EXPECT_EQ(poller_.polls, polls);
}

// Every other round moves something, but not what is waited for.
class RestlessPoller : public Poller {
 public:
  bool poll() override { return ++polls_ % 2 == 0; }
  int wakeFd() const override { return -1; }

 private:
  int polls_ = 0;
};

TEST_P(ProgressTest, WhatOthersMoveDoesNotPutOffADeadline) {
  RestlessPoller restless;
  const bool done = [&] {
    auto lock = domain_.lock();
    domain_.add(restless);
    const bool ready = domain_.wait(
        lock, [] { return false; }, soon());
    domain_.remove(restless);
    return ready;
  }();
  EXPECT_FALSE(done);
}

class RestingPoller : public Poller {
 public:
  bool poll() override {
    polls++;
    rest(true);
    return false;
  }
  int wakeFd() const override { return -1; }
  bool arm() override {
    rest(false);
    return false;
  }
  int polls = 0;
};

TEST_P(ProgressTest, APollerThatRestsIsLeftOutOfMostRounds) {
  RestingPoller resting;
  auto lock = domain_.lock();
  domain_.add(resting);
  (void)domain_.poll();
  const int before = resting.polls;
  const int others = poller_.polls;
  for (int i = 0; i < 5120; i++) {
    (void)domain_.poll();
  }
  EXPECT_EQ(resting.polls - before, 10);
  EXPECT_EQ(poller_.polls - others, 5120);
  resting.arm();  // as before a sleep
  (void)domain_.poll();
  EXPECT_EQ(resting.polls - before, 11);
  domain_.remove(resting);
}

std::string nameOf(const ::testing::TestParamInfo<Tells>& info) {
  constexpr std::array kNames = {"once", "level", "word"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(, ProgressTest,
                         ::testing::Values(Tells::kOnce, Tells::kLevel,
                                           Tells::kByWord),
                         nameOf);

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
