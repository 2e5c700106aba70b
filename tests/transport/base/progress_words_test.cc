// A driver that sleeps on words of memory for a while instead of in epoll.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/transport/base/fake_poller.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using std::chrono::milliseconds;

class WordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto lock = domain_.lock();
    domain_.add(poller_);
  }
  void TearDown() override {
    const auto lock = domain_.lock();
    domain_.remove(poller_);
  }
  void waitInVain() {
    auto lock = domain_.lock();
    EXPECT_FALSE(domain_.wait(
        lock, [] { return false; }, Deadline::after(milliseconds(50))));
  }

  ProgressDomain domain_;
  FakePoller poller_{Tells::kByWord};
};

TEST_F(WordsTest, AShortWaitSleepsOnWordsAndALongOneInEpoll) {
  waitInVain();
  EXPECT_EQ(poller_.wordArms, FutexWords::supported() ? 1 : 0);
  EXPECT_GE(poller_.arms, 1);
}

TEST_F(WordsTest, WhatOnlyTheDescriptorTellsOfIsSeenSoon) {
  std::thread other([&] {
    EXPECT_TRUE(eventually([&] {
      const auto lock = domain_.lock();
      return domain_.counters().blockingWaits > 0;
    }));
    poller_.arriveAside();
  });
  auto lock = domain_.lock();
  EXPECT_TRUE(domain_.wait(
      lock, [&] { return poller_.taken > 0; }, never()));
  lock.unlock();
  other.join();
}

TEST_F(WordsTest, APollerThatNeedsItsDescriptorKeepsAllInEpoll) {
  FakePoller needs;
  {
    const auto lock = domain_.lock();
    domain_.add(needs);
  }
  waitInVain();
  EXPECT_EQ(poller_.wordArms, 0);
  EXPECT_GE(needs.arms, 1);
  const auto lock = domain_.lock();
  domain_.remove(needs);
}

TEST_F(WordsTest, TooManyWordsKeepAllInEpoll) {
  poller_.words = FutexWords::kMost;  // and one of the domain's own
  waitInVain();
  EXPECT_EQ(poller_.wordArms, 0);
  EXPECT_GE(poller_.arms, 1);
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
