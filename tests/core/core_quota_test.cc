// Quotas of processor time as the kernel's files tell them, in trees of them.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gloo/internal/cores.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

class CoreQuotaTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(directory_.path() + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void mount(const std::string& top = "/") {
    write("/proc/self/mountinfo",
          "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
          "30 22 0:26 " +
              top +
              " /cg rw,nosuid shared:4 - cgroup2 none rw\n"
              "31 22 0:27 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
              "32 22 0:28 / /mem rw - cgroup cgroup rw,memory\n");
  }
  std::vector<double> quotas() const {
    std::vector<double> cores;
    for (const CoreQuota& quota : coreQuotas(directory_.path())) {
      cores.push_back(quota.cores);
    }
    return cores;
  }
  uint64_t smallest() const {
    return coreQuotas(directory_.path()).at(0).group;
  }

 private:
  test::ScratchDirectory directory_;
};

using Cores = std::vector<double>;

TEST_F(CoreQuotaTest, WhatCannotBeReadIsNone) {
  EXPECT_EQ(Cores(), quotas());
  mount();
  EXPECT_EQ(Cores(), quotas());
  write("/proc/self/cgroup", "nonsense\n0::/job\n\n");
  for (const char* text : {"", "nonsense", "max 100000\n", "0 100000\n",
                           "-1 100000\n", "100000\n", "100000 0\n"}) {
    write("/cg/job/cpu.max", text);
    EXPECT_EQ(Cores(), quotas()) << text;
  }
}

TEST_F(CoreQuotaTest, OfAGroupAndThoseAbove) {
  mount();
  write("/proc/self/cgroup", "0::/slice/job/step\n");
  write("/cg/slice/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(Cores{2.5}, quotas());
  write("/cg/slice/cpu.max", "4000 2000\n");
  EXPECT_EQ((Cores{2, 2.5}), quotas());
  write("/cg/slice/job/step/cpu.max", "max 100000\n");
  write("/cg/slice/other/cpu.max", "1000 100000\n");
  EXPECT_EQ((Cores{2, 2.5}), quotas());
}

TEST_F(CoreQuotaTest, OfTheGroupThatIsMounted) {
  mount("/docker/1");
  write("/proc/self/cgroup", "0::/docker/1/inner\n");
  write("/cg/cpu.max", "300000 100000\n");
  write("/cg/inner/cpu.max", "150000 100000\n");
  EXPECT_EQ((Cores{1.5, 3}), quotas());
  write("/proc/self/cgroup", "0::/../elsewhere\n");
  EXPECT_EQ(Cores{3}, quotas());
}

TEST_F(CoreQuotaTest, OfTheFirstVersion) {
  mount();
  write("/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/jobs/one\n0::/\n");
  write("/cpu/jobs/cpu.cfs_quota_us", "-1\n");
  write("/cpu/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cores(), quotas());
  write("/cpu/jobs/one/cpu.cfs_quota_us", "50000\n");
  write("/cpu/jobs/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cores{.5}, quotas());
  write("/cpu/jobs/cpu.cfs_quota_us", "800000\n");
  EXPECT_EQ((Cores{.5, 8}), quotas());
}

// As processes in one group see it under other names.
TEST_F(CoreQuotaTest, AGroupHasOneNumberAndNoOtherHasIt) {
  mount();
  write("/proc/self/cgroup", "0::/one/inner\n");
  write("/cg/one/cpu.max", "100000 100000\n");
  write("/cg/two/cpu.max", "100000 100000\n");
  const uint64_t one = smallest();
  EXPECT_NE(0u, one);
  write("/proc/self/cgroup", "0::/one\n");
  EXPECT_EQ(one, smallest());
  write("/proc/self/cgroup", "0::/two\n");
  EXPECT_NE(one, smallest());
}

TEST(CoreQuota, IsRoundedDownToWhatThreadsDoNotUseUp) {
  EXPECT_EQ(1, (CoreQuota{.5, 1}.whole()));
  EXPECT_EQ(1, (CoreQuota{1.99, 1}.whole()));
  EXPECT_EQ(2, (CoreQuota{2, 1}.whole()));
  EXPECT_EQ(1 << 20, (CoreQuota{1e18, 1}.whole()));
}

TEST(CoreQuota, LimitsTheUsableCores) {
  const std::vector<CoreQuota> kept = ownCoreQuotas();
  const cpu_set_t allowed = allowedCores();
  replaceCoreQuotas({});
  EXPECT_EQ(CPU_COUNT(&allowed), usableCores());
  replaceCoreQuotas({{1.5, 7}, {1000, 8}});
  EXPECT_EQ(1, usableCores());
  replaceCoreQuotas({{1e6, 7}});
  EXPECT_EQ(CPU_COUNT(&allowed), usableCores());
  replaceCoreQuotas(kept);
}

}  // namespace
}  // namespace internal
GLOO_NAMESPACE_END
