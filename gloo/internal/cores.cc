#include "gloo/internal/cores.h"

#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <utility>

#include "gloo/internal/cgroups.h"
#include "gloo/internal/fork.h"

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

// Microseconds, of each so many; 0: no quota. The second version's file says
// "quota period", or "max period".
double quotaOf(const Cgroup& group) {
  double quota = 0;
  double period = 0;
  if (group.version == 1) {
    std::ifstream(group.directory + "/cpu.cfs_quota_us") >> quota;  // -1: none
    std::ifstream(group.directory + "/cpu.cfs_period_us") >> period;
  } else {
    std::ifstream(group.directory + "/cpu.max") >> quota >> period;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

// The kernel's own, whatever the group is called where it is seen from.
uint64_t numberOf(const Cgroup& group) {
  struct stat status {};
  return ::stat(group.directory.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::atomic<const std::vector<CoreQuota>*> replaced{nullptr};

}  // namespace

std::vector<CoreQuota> coreQuotas(const std::string& root) {
  std::vector<CoreQuota> quotas;
  for (const Cgroup& group : cgroupsOf("cpu", root)) {
    if (const double cores = quotaOf(group); cores > 0) {
      quotas.push_back({cores, numberOf(group)});
    }
  }
  std::sort(
      quotas.begin(), quotas.end(),
      [](const CoreQuota& a, const CoreQuota& b) { return a.cores < b.cores; });
  return quotas;
}

const std::vector<CoreQuota>& ownCoreQuotas() {
  if (const auto* others = replaced.load(std::memory_order_acquire)) {
    return *others;
  }
  return madeOnce([] { return coreQuotas(); });
}

void replaceCoreQuotas(std::vector<CoreQuota> quotas) {
  static std::vector<CoreQuota> others;
  others = std::move(quotas);
  replaced.store(&others, std::memory_order_release);
}

int usableCores() {
  const cpu_set_t cores = allowedCores();
  int usable = CPU_COUNT(&cores);
  for (const CoreQuota& quota : ownCoreQuotas()) {
    usable = std::min(usable, quota.whole());
  }
  return usable;
}

}  // namespace internal
GLOO_NAMESPACE_END
