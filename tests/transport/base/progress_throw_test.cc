// Pollers that throw, for want of memory: whoever polls them hears of it, and
// everybody else goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

#include "tests/transport/base/fake_poller.h"
#include "transport/base/progress.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

// Throws from so many of the next polls; then takes what was given to it.
class ThrowingPoller : public Poller {
 public:
  bool poll() override {
    if (throws > 0) {
      throws--;
      thrown++;
      throw std::bad_alloc();
    }
    return given.exchange(0) > 0 && ++taken > 0;
  }
  int wakeFd() const override { return -1; }
  bool arm() override { return given > 0 || throws > 0; }

  std::atomic<int> throws{0};
  std::atomic<int> thrown{0};
  std::atomic<int> given{0};
  std::atomic<int> taken{0};
};

class ProgressThrowTest : public ::testing::Test {
 protected:
  ProgressThrowTest() {
    const auto lock = domain_.lock();
    domain_.add(poller_);
  }
  ~ProgressThrowTest() override {
    const auto lock = domain_.lock();
    domain_.remove(poller_);
  }

  void give() {
    const auto lock = domain_.lock();
    poller_.given = 1;
    domain_.changed();
  }
  bool waitForTaken() {
    auto lock = domain_.lock();
    return domain_.wait(
        lock, [this] { return poller_.taken > 0; }, never());
  }

  ProgressDomain domain_;
  ThrowingPoller poller_;
};

TEST_F(ProgressThrowTest, TheDriverHearsOfItAndTheNextOneDrives) {
  {
    auto lock = domain_.lock();
    poller_.throws = 1;
    EXPECT_THROW(domain_.wait(
                     lock, [] { return false; }, never()),
                 std::bad_alloc);
    EXPECT_TRUE(lock.owns_lock());
  }
  give();
  EXPECT_TRUE(waitForTaken());
}

TEST_F(ProgressThrowTest, ASleeperTakesTheRoleOver) {
  std::thread driver([this] {
    auto lock = domain_.lock();
    EXPECT_THROW(domain_.wait(
                     lock, [] { return false; }, never()),
                 std::bad_alloc);
  });
  std::thread sleeper([this] {
    EXPECT_TRUE(eventually([this] {  // somebody drives
      const auto lock = domain_.lock();
      return domain_.counters().blockingWaits > 0;
    }));
    EXPECT_TRUE(waitForTaken());
  });
  EXPECT_TRUE(eventually([this] {
    const auto lock = domain_.lock();
    return domain_.counters().sleeps > 0;
  }));
  {
    const auto lock = domain_.lock();
    poller_.throws = 1;
    domain_.changed();
  }
  driver.join();
  poller_.given = 1;  // nobody is woken for it
  {
    const auto lock = domain_.lock();
    domain_.nudge();
  }
  sleeper.join();
}

TEST_F(ProgressThrowTest, TheBackgroundThreadGoesOn) {
  {
    const auto lock = domain_.lock();
    poller_.throws = 20;
    domain_.changed();
  }
  EXPECT_TRUE(eventually([this] { return poller_.thrown == 20; }));
  give();
  EXPECT_TRUE(eventually([this] { return poller_.taken > 0; }));
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
