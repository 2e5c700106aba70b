#include "gloo/common/common.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gloo/common/aligned_allocator.h"
#include "gloo/common/memory.h"
#include "gloo/common/utils.h"
#include "tests/support/forked_child.h"

namespace {

TEST(Common, MakeUniqueIsThere) { EXPECT_EQ(*gloo::make_unique<int>(3), 3); }

TEST(AlignedAllocator, VectorsStartAtTheAlignment) {
  for (int i = 1; i < 50; i++) {
    std::vector<float, gloo::aligned_allocator<float, 256>> data(i);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data.data()) % 256, 0u);
  }
}

TEST(AlignedAllocator, TheAlignmentOfBuffersSuitsWideVectors) {
  std::vector<char, gloo::aligned_allocator<char, gloo::kBufferAlignment>> data(
      3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data.data()) % 32, 0u);
}

TEST(AlignedAllocator, ASizeThatOverflowsIsRefused) {
  gloo::aligned_allocator<double, 64> allocator;
  EXPECT_THROW(
      {
        double* data =
            allocator.allocate(std::numeric_limits<size_t>::max() / 4);
        allocator.deallocate(data, 0);
      },
      std::bad_alloc);
}

TEST(NonOwningPtr, GivesAccessUntilTheOwnerIsReset) {
  int object = 5;
  gloo::ShareableNonOwningPtr<int> owner(&object);
  const gloo::WeakNonOwningPtr<int> weak(owner);
  {
    gloo::NonOwningPtr<int> access = weak.lock();
    ASSERT_TRUE(access);
    EXPECT_EQ(*access, 5);
    EXPECT_EQ(access.get(), &object);
    const gloo::NonOwningPtr<int> moved = std::move(access);
    EXPECT_EQ(moved.get(), &object);
  }
  owner.reset();
  EXPECT_FALSE(weak.lock());
  EXPECT_FALSE(gloo::NonOwningPtr<int>(weak));
}

TEST(NonOwningPtr, AnEmptyOneIsNull) {
  EXPECT_FALSE(gloo::NonOwningPtr<int>());
  EXPECT_FALSE(gloo::WeakNonOwningPtr<int>().lock());
}

TEST(NonOwningPtr, TheOwnerWaitsForThoseWhoUseTheObject) {
  int object = 5;
  gloo::ShareableNonOwningPtr<int> owner(&object);
  const gloo::WeakNonOwningPtr<int> weak(owner);
  std::atomic<bool> released{false};
  gloo::NonOwningPtr<int> access = weak.lock();
  std::thread resetter([&] {
    owner.reset();
    EXPECT_TRUE(released);
  });
  // Withdrawn, though the owner still waits.
  while (weak.lock()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(*access, 5);
  released = true;
  access = gloo::NonOwningPtr<int>();
  resetter.join();
}

TEST(NonOwningPtr, AForkedChildHasNoAccessAndWaitsForNobody) {
  int object = 5;
  auto owner = std::make_unique<gloo::ShareableNonOwningPtr<int>>(&object);
  const gloo::WeakNonOwningPtr<int> weak(*owner);
  const gloo::NonOwningPtr<int> access = weak.lock();
  EXPECT_TRUE(gloo::test::holdsInChild([&] {
    const bool isNull = !weak.lock();
    owner.reset();
    return isNull;
  }));
}

TEST(Utils, HostnameIsTheSystems) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  EXPECT_EQ(gloo::getHostname(), name);
}

TEST(Utils, ThreadNamesAreCutNotRefused) {
  std::thread thread([] {
    gloo::setThreadName("gloo progress thread");
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    EXPECT_STREQ(name, "gloo progress t");
  });
  thread.join();
}

}  // namespace
