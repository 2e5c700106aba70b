// What is promised of a context that is not connected yet.
#include "gloo/context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

GLOO_NAMESPACE_BEGIN
namespace {

using std::chrono::milliseconds;

TEST(Context, GivesASlotToOneCallerOnly) {
  constexpr size_t kThreads = 4;
  constexpr size_t kCalls = 100000;
  Context context(0, 1);
  std::vector<std::vector<int>> slots(kThreads);
  std::atomic<bool> started{false};
  std::vector<std::thread> threads;
  for (auto& mine : slots) {
    mine.reserve(kCalls);
    threads.emplace_back([&] {
      started.wait(false);
      for (size_t i = 0; i < kCalls; i++) {
        mine.push_back(context.nextSlot());
      }
    });
  }
  started = true;
  started.notify_all();
  std::vector<int> all;
  for (size_t i = 0; i < kThreads; i++) {
    threads[i].join();
    all.insert(all.end(), slots[i].begin(), slots[i].end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.end(), std::adjacent_find(all.begin(), all.end()));
  EXPECT_EQ(static_cast<int>(all.size()), context.nextSlot(3));
  EXPECT_EQ(static_cast<int>(all.size()) + 3, context.nextSlot());
}

// As callers write who knew them as an int and a duration.
class Deriving : public Context {
 public:
  using Context::Context;

  int takeThree() {
    const auto first = slot_;
    slot_ += 2;
    slot_++;
    return std::min(first, slot_);
  }
  milliseconds limit() const {
    auto limit = timeout_;
    if (timeout_ == kNoTimeout || timeout_.count() > 1000) {
      limit = std::max(timeout_, milliseconds(1000));
    }
    return limit;
  }
  std::chrono::steady_clock::time_point deadline() const {
    return std::chrono::steady_clock::time_point() + timeout_;
  }
  void shorten() { timeout_ = timeout_ / 2; }
};

// Callers without a bcube give 0 there.
TEST(Context, AnyBaseWillDo) {
  for (const int base : {-1, 0, 1, 2, 1000}) {
    EXPECT_EQ(base, Context(0, 1, base).base);
  }
}

TEST(Context, MembersArePlainValuesForDerivedClasses) {
  Deriving context(0, 1);
  EXPECT_EQ(0, context.takeThree());
  EXPECT_EQ(3, context.nextSlot());
  EXPECT_EQ(milliseconds(30000), context.limit());
  context.shorten();
  EXPECT_EQ(milliseconds(15000), context.getTimeout());
  EXPECT_EQ(milliseconds(15000), context.deadline().time_since_epoch());
}

// A race that the thread sanitizer finds.
TEST(Context, TheTimeLimitMayChangeWhileItIsRead) {
  Context context(0, 1);
  EXPECT_EQ(milliseconds(30000), context.getTimeout());
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over) {
      EXPECT_GE(milliseconds(30000), context.getTimeout());
    }
  });
  for (int i = 0; i < 10000; i++) {
    context.setTimeout(milliseconds(i));
  }
  over = true;
  reader.join();
  EXPECT_EQ(milliseconds(9999), context.getTimeout());
}

}  // namespace
GLOO_NAMESPACE_END
