// What is made once in a process does not stop a child forked meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "gloo/internal/fork.h"
#include "tests/support/forked_child.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::atomic<int> makers{0};
std::atomic<bool> goOn{false};

// The first maker takes its time.
const int& value() {
  return internal::madeOnce([] {
    const int maker = makers++;
    while (maker == 0 && !goOn) {
      std::this_thread::yield();
    }
    return maker;
  });
}

TEST(MadeOnceTest, WhileAThreadMakesItOthersAndAChildGoOn) {
  const int* ofThread = nullptr;
  std::thread slow([&] { ofThread = &value(); });
  while (makers == 0) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(
      holdsInChild([] { return value() == 1 && &value() == &value(); }));
  const int* const ours = &value();
  goOn = true;
  slow.join();
  EXPECT_EQ(*ours, 1);
  EXPECT_EQ(ofThread, ours);
  EXPECT_TRUE(holdsInChild([&] { return &value() == ours; }));
  EXPECT_EQ(makers, 2);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
