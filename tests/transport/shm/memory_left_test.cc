// What the files of the kernel say is left, in trees of them.
#include "transport/shm/memory_left.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gloo/common/error.h"
#include "tests/support/spawn.h"
#include "transport/shm/sealed_memory.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::shm::MemoryBudget;
using transport::shm::memoryLeft;

constexpr uint64_t kMiB = 1 << 20;

class MemoryLeftTest : public ::testing::Test {
 protected:
  MemoryLeftTest() {
    write("/proc/meminfo",
          "MemTotal: 9000000 kB\nMemAvailable:    1024000 kB\n"
          "SwapFree:       0 kB\n");
  }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(directory_.path() + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void second(const std::string& group, const std::string& limit,
              uint64_t usage, uint64_t files = 0, uint64_t names = 0) {
    write("/cg" + group + "/memory.max", limit + "\n");
    write("/cg" + group + "/memory.current", std::to_string(usage) + "\n");
    write("/cg" + group + "/memory.stat", "anon 77\ninactive_file " +
                                              std::to_string(files) +
                                              "\nactive_file 0\nshmem 88\n"
                                              "slab_reclaimable " +
                                              std::to_string(names) + "\n");
  }
  void first(const std::string& group, uint64_t limit, uint64_t usage) {
    write("/mem" + group + "/memory.limit_in_bytes", std::to_string(limit));
    write("/mem" + group + "/memory.usage_in_bytes", std::to_string(usage));
  }
  void mountSecond(const std::string& top = "/") {
    write("/proc/self/mountinfo",
          "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
          "30 22 0:26 " +
              top + " /cg rw,nosuid shared:4 - cgroup2 none rw\n");
  }
  void mountFirst() {
    write("/proc/self/mountinfo",
          "31 22 0:27 / /cpu rw - cgroup cgroup rw,cpu\n"
          "32 22 0:28 / /mem rw - cgroup cgroup rw,memory\n");
  }
  uint64_t left() const { return memoryLeft(directory_.path()); }
  std::string root() const { return directory_.path(); }

 private:
  ScratchDirectory directory_;
};

TEST_F(MemoryLeftTest, OfTheMachine) {
  EXPECT_EQ(left(), 1000 * kMiB);
  write("/proc/meminfo", "MemAvailable: 1024 kB\nSwapFree: 2048 kB\n");
  EXPECT_EQ(left(), 3 * kMiB);
}

TEST_F(MemoryLeftTest, WhatCannotBeReadIsNoLimit) {
  write("/proc/meminfo", "nonsense");
  EXPECT_EQ(left(), UINT64_MAX);
  write("/proc/self/cgroup", "nonsense\n0::/job\n\n");
  write("/proc/self/mountinfo", "nonsense\n - \n1 2 3 - cgroup2\n");
  EXPECT_EQ(left(), UINT64_MAX);
  mountSecond();
  EXPECT_EQ(left(), UINT64_MAX);
  write("/cg/job/memory.max", "nonsense");
  EXPECT_EQ(left(), UINT64_MAX);
}

TEST_F(MemoryLeftTest, OfAGroup) {
  mountSecond();
  write("/proc/self/cgroup", "0::/job\n");
  second("/job", "max", 5 * kMiB);
  EXPECT_EQ(left(), 1000 * kMiB);
  second("/job", std::to_string(64 * kMiB), 20 * kMiB);
  EXPECT_EQ(left(), 44 * kMiB);
  // The kernel drops what it has of files first.
  second("/job", std::to_string(64 * kMiB), 20 * kMiB, 7 * kMiB);
  EXPECT_EQ(left(), 51 * kMiB);
  second("/job", std::to_string(64 * kMiB), 64 * kMiB, 7 * kMiB, 40 * kMiB);
  EXPECT_EQ(left(), 47 * kMiB);
  second("/job", std::to_string(64 * kMiB), 65 * kMiB);
  EXPECT_EQ(left(), 0u);
}

TEST_F(MemoryLeftTest, OfTheGroupsAbove) {
  mountSecond();
  write("/proc/self/cgroup", "0::/slice/job/step\n");
  second("/slice", std::to_string(10 * kMiB), 4 * kMiB);
  second("/slice/job", "max", 4 * kMiB);
  second("/slice/job/step", std::to_string(8 * kMiB), kMiB);
  EXPECT_EQ(left(), 6 * kMiB);
  second("/slice/other", std::to_string(kMiB), kMiB);
  second("/slicejob", std::to_string(kMiB), kMiB);
  EXPECT_EQ(left(), 6 * kMiB);
  second("", std::to_string(9 * kMiB), 4 * kMiB);
  EXPECT_EQ(left(), 5 * kMiB);
}

// A container's own part of the tree is mounted there, or a namespace hides
// where it is.
TEST_F(MemoryLeftTest, OfTheGroupThatIsMounted) {
  second("", std::to_string(64 * kMiB), 0);
  second("/inner", std::to_string(32 * kMiB), 0);
  mountSecond("/docker/1");
  write("/proc/self/cgroup", "0::/docker/1\n");
  EXPECT_EQ(left(), 64 * kMiB);
  write("/proc/self/cgroup", "0::/docker/1/inner\n");
  EXPECT_EQ(left(), 32 * kMiB);
  write("/proc/self/cgroup", "0::/docker/12/inner\n");
  EXPECT_EQ(left(), 64 * kMiB);
  write("/proc/self/cgroup", "0::/../other\n");
  EXPECT_EQ(left(), 64 * kMiB);
}

TEST_F(MemoryLeftTest, SwapCountsAsFarAsTheGroupMayUseIt) {
  write("/proc/meminfo", "MemAvailable: 1024000 kB\nSwapFree: 10240 kB\n");
  mountSecond();
  write("/proc/self/cgroup", "0::/job\n");
  second("/job", std::to_string(64 * kMiB), 0);
  EXPECT_EQ(left(), 74 * kMiB);
  write("/cg/job/memory.swap.max", std::to_string(3 * kMiB));
  write("/cg/job/memory.swap.current", std::to_string(kMiB));
  EXPECT_EQ(left(), 66 * kMiB);
}

TEST_F(MemoryLeftTest, OfTheFirstVersion) {
  mountFirst();
  write("/proc/self/cgroup", "5:cpu:/fast\n4:memory:/jobs/one\n0::/\n");
  // No limit is a large number.
  first("", 9223372036854771712u, 50 * kMiB);
  first("/jobs", 9223372036854771712u, 30 * kMiB);
  first("/jobs/one", 9223372036854771712u, 30 * kMiB);
  EXPECT_EQ(left(), 1000 * kMiB);
  first("/jobs/one", 64 * kMiB, 30 * kMiB);
  EXPECT_EQ(left(), 34 * kMiB);
  write("/mem/jobs/one/memory.stat",
        "inactive_file 5\ntotal_inactive_file 1048576\n"
        "total_active_file 1048576\n");
  EXPECT_EQ(left(), 36 * kMiB);
  first("/jobs", 40 * kMiB, 35 * kMiB);
  EXPECT_EQ(left(), 5 * kMiB);
  write("/mem/jobs/memory.memsw.limit_in_bytes", std::to_string(40 * kMiB));
  write("/mem/jobs/memory.memsw.usage_in_bytes", std::to_string(38 * kMiB));
  EXPECT_EQ(left(), 2 * kMiB);
}

TEST_F(MemoryLeftTest, MoreIsNotTaken) {
  MemoryBudget budget(root());
  budget.take(1000 * kMiB);
  EXPECT_THROW(budget.take(1001 * kMiB), IoException);
  // What has been taken is in use by then.
  budget.confirm(1000 * kMiB);
  EXPECT_THROW(budget.confirm(2001 * kMiB), IoException);
  // What others have taken is seen at once where there is little.
  write("/proc/meminfo", "MemAvailable: 1024 kB\nSwapFree: 0 kB\n");
  EXPECT_THROW(budget.take(2 * kMiB), IoException);
  budget.take(kMiB);
}

TEST_F(MemoryLeftTest, AllSharedMemoryIsTakenOfIt) {
  constexpr size_t kTooMuch = size_t{1} << 50;
  EXPECT_THROW(transport::shm::SealedMemory memory(kTooMuch), IoException);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
