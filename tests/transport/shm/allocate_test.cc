// The shared allocator: what it promises its callers, and what it takes from
// peers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>

#include "gloo/common/error.h"
#include "gloo/transport/shm/allocate.h"
#include "tests/support/forked_child.h"
#include "tests/support/sanitized.h"
#include "transport/shm/allocation.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

using base::SharedAllocations;

std::string textOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

bool isZero(const void* data, size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  return std::all_of(begin, begin + bytes, [](char c) { return c == 0; });
}

TEST(AllocateTest, GivesZerosThatCanBeWritten) {
  for (const size_t bytes : {1, 4096, 5000, 3 << 20}) {
    const Memory memory = allocate(bytes);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory.size(), bytes);
    EXPECT_TRUE(isZero(memory.data(), bytes));
    std::memset(memory.data(), 1, bytes);
  }
}

// tmpfs gives up at a signal, in kernels before 6.10 or so.
TEST(AllocateTest, SignalsDoNotDisturbIt) {
  static volatile sig_atomic_t signals;
  const auto before = std::signal(SIGALRM, [](int) { signals = signals + 1; });
  const itimerval often{{0, 1000}, {0, 1000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  EXPECT_NO_THROW(allocate(256 << 20));
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  std::signal(SIGALRM, before);
  EXPECT_GT(signals, 0);
}

TEST(AllocateTest, KeepsToTheAlignment) {
  for (const size_t alignment : {1, 64, 4096, 8192, 2 << 20}) {
    const Memory memory = allocate(10000, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % alignment, 0u);
    std::memset(memory.data(), 1, memory.size());
  }
}

TEST(AllocateTest, Moves) {
  Memory first = allocate(100);
  void* const data = first.data();
  Memory second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: moved from
  EXPECT_EQ(first.size(), 0u);
  EXPECT_EQ(second.data(), data);
  second = allocate(200);
  EXPECT_EQ(second.size(), 200u);
  second = Memory();
  EXPECT_FALSE(second);
}

TEST(AllocateTest, SaysWhatIsWrong) {
  EXPECT_THROW(allocate(0), InvalidOperationException);
  EXPECT_THROW(allocate(10, 0), InvalidOperationException);
  EXPECT_THROW(allocate(10, 48), InvalidOperationException);
  EXPECT_THROW(allocate(10, size_t{1} << 40), InvalidOperationException);
  EXPECT_THROW(allocate(SIZE_MAX), InvalidOperationException);
  EXPECT_NE(textOf([] { allocate(size_t{1} << 50); }).find("bytes are left"),
            std::string::npos);
}

class Limit {
 public:
  Limit(__rlimit_resource resource, rlim_t value) : resource_(resource) {
    EXPECT_EQ(::getrlimit(resource, &before_), 0);
    const rlimit now{value, before_.rlim_max};
    EXPECT_EQ(::setrlimit(resource, &now), 0);
  }
  ~Limit() { ::setrlimit(resource_, &before_); }

 private:
  const __rlimit_resource resource_;
  rlimit before_{};
};

TEST(AllocateTest, NamesTheLimitOfFileSizes) {
  const Limit limit(RLIMIT_FSIZE, 1 << 20);
  EXPECT_NE(textOf([] { allocate(2 << 20); }).find("ulimit -f"),
            std::string::npos);
}

// Without a descriptor left, the sanitizer takes each object for a broken one.
#ifndef GLOO_TEST_SANITIZED
TEST(AllocateTest, NamesTheLimitOfDescriptors) {
  const Limit limit(RLIMIT_NOFILE, 0);
  EXPECT_NE(textOf([] { allocate(100); }).find("ulimit -n"), std::string::npos);
}
#endif

TEST(AllocateTest, IsFoundByAddressAsLongAsItIsThere) {
  SharedAllocations& all = SharedAllocations::instance();
  Memory memory = allocate(5000);
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const auto inside = all.find(begin + 4999);
  EXPECT_NE(inside.id, 0u);
  EXPECT_EQ(inside.version, all.version());
  EXPECT_TRUE(inside.holds(begin, 5000));
  EXPECT_FALSE(inside.holds(begin, 8193));
  EXPECT_FALSE(inside.holds(begin - 1, 1));
  int other = 0;
  const auto gap = all.find(reinterpret_cast<uintptr_t>(&other));
  EXPECT_EQ(gap.id, 0u);
  EXPECT_FALSE(gap.holds(begin, 1));
  memory = Memory();
  EXPECT_NE(inside.version, all.version());
  EXPECT_EQ(all.find(begin).id, 0u);
  EXPECT_EQ(all.byId(inside.id), nullptr);
}

std::shared_ptr<Allocation> borrowFrom(const Allocation& owner) {
  return Allocation::borrow(base::UniqueFd(::dup(owner.descriptor())),
                            owner.id());
}

TEST(AllocationTest, IsTheSameMemoryForWhoBorrowsIt) {
  const auto owner = Allocation::make(10000, 1);
  const auto borrower = borrowFrom(*owner);
  EXPECT_EQ(borrower->bytes(), owner->bytes());
  EXPECT_NE(borrower->data(), owner->data());
  owner->data()[9999] = 5;
  borrower->data()[0] = 6;
  EXPECT_EQ(borrower->data()[9999], 5);
  EXPECT_EQ(owner->data()[0], 6);
}

TEST(AllocationTest, IsGivenBackAtOnce) {
  const auto owner = Allocation::make(10000, 1);
  const auto borrower = borrowFrom(*owner);
  std::memset(owner->data(), 1, owner->bytes());
  EXPECT_FALSE(borrower->freed());
  owner->free();
  EXPECT_TRUE(borrower->freed());
  EXPECT_TRUE(isZero(borrower->data(), borrower->bytes()));
}

TEST(AllocationTest, WhatIsWithdrawnBelongsToItsOwner) {
  const auto owner = Allocation::make(40000, 1);
  const auto borrower = borrowFrom(*owner);
  std::memset(owner->data(), 1, owner->bytes());
  owner->withdraw(5000, 10000);
  std::memset(borrower->data(), 2, borrower->bytes());
  // Whole pages.
  EXPECT_EQ(owner->data()[4095], 2);
  EXPECT_EQ(owner->data()[4096], 1);
  EXPECT_EQ(owner->data()[16383], 1);
  EXPECT_EQ(owner->data()[16384], 2);
  owner->data()[5000] = 3;
  EXPECT_EQ(borrower->data()[5000], 2);
  EXPECT_FALSE(owner->isPrivate(0, 4096));
  EXPECT_TRUE(owner->isPrivate(0, 4097));
  EXPECT_TRUE(owner->isPrivate(16383, 1));
  EXPECT_FALSE(owner->isPrivate(16384, owner->bytes() - 16384));
}

// Of operations side by side, whose vectors have a page in common.
TEST(AllocationTest, WhatWasWithdrawnIsWithdrawnOnce) {
  const auto owner = Allocation::make(40000, 1);
  const auto borrower = borrowFrom(*owner);
  owner->withdraw(0, 10000);
  std::memset(owner->data(), 3, owner->bytes());
  owner->withdraw(10000, 10000);
  std::memset(borrower->data(), 2, borrower->bytes());
  EXPECT_EQ(owner->data()[9999], 3);
  EXPECT_EQ(owner->data()[19999], 3);
  EXPECT_EQ(owner->data()[30000], 2);
}

TEST(AllocationTest, RefusesWhatIsNotOne) {
  const auto owner = Allocation::make(10000, 1);
  const auto borrow = [](int fd, uint64_t id) {
    return textOf([&] { Allocation::borrow(base::UniqueFd(fd), id); });
  };
  EXPECT_NE(borrow(::dup(owner->descriptor()), owner->id() + 1), "");
  const SealedMemory other(8192);
  EXPECT_NE(borrow(::dup(other.descriptor()), 1).find("announced"),
            std::string::npos);
  const SealedMemory small(4096);
  EXPECT_NE(borrow(::dup(small.descriptor()), 1), "");
  // Its label would lie across words.
  const SealedMemory odd(12289);
  char* const label = odd.data() + 12289 - 4096;
  std::memset(label, 0, 4096);
  std::memcpy(label, "GLOOmem1\1", 9);
  EXPECT_NE(borrow(::dup(odd.descriptor()), 1), "");
  const int unsealed = ::memfd_create("x", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(unsealed, 8192), 0);
  EXPECT_NE(borrow(unsealed, 1).find("sealed"), std::string::npos);
  EXPECT_NE(borrow(::open("/dev/null", O_RDWR), 1), "");
}

TEST(AllocateTest, AForkedChildGivesNothingBack) {
  Memory memory = allocate(10000);
  std::memset(memory.data(), 1, 10000);
  EXPECT_TRUE(test::holdsInChild([&] {
    memory = Memory();
    return bool(allocate(100));
  }));
  EXPECT_EQ(static_cast<char*>(memory.data())[9999], 1);
}

TEST(AllocateTest, AForkedChildAllocatesWhileAThreadOfItsParentDoes) {
  EXPECT_TRUE(test::holdsInChildrenWhile(
      [] { base::SharedAllocations::instance().find(0); },
      [] { return bool(allocate(100)); }));
}

}  // namespace
}  // namespace transport::shm
GLOO_NAMESPACE_END
