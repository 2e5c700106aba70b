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
