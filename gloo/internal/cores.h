// Where the calling thread may run, for how much of the time, and moving it to
// another core, for once.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// At least one. Of a kernel with more cores than such a set has: its first
// ones.
inline cpu_set_t allowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) == 0) {
    const unsigned all = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned core = 0; core < all && core < CPU_SETSIZE; core++) {
      CPU_SET(core, &set);
    }
  }
  return set;
}

// The `n`th core of the set, from 0 on; -1: it has fewer.
inline int coreAt(const cpu_set_t& set, size_t n) {
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (CPU_ISSET(core, &set) && n-- == 0) {
      return core;
    }
  }
  return -1;
}

// The calling thread goes on there; it may run on all of `allowed`, as before.
// False: the system does not let it be moved.
inline bool moveToCore(int core, const cpu_set_t& allowed) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  if (sched_setaffinity(0, sizeof(only), &only) != 0) {
    return false;
  }
  if (sched_setaffinity(0, sizeof(allowed), &allowed) != 0) {
    // None of them is this process's any more: all that are.
    cpu_set_t any;
    std::memset(&any, 0xff, sizeof(any));
    sched_setaffinity(0, sizeof(any), &any);
  }
  return true;
}

// A cgroup may have a quota of processor time ("cpu.max", a container's limit),
// whatever cores its threads run on. Who uses it up stands still until the next
// period begins, usually for tens of milliseconds.
struct CoreQuota {
  double cores = 0;    // that may be busy all the time
  uint64_t group = 0;  // the same number in all processes that share it
  // Threads that never sleep: so many do not use it up. Rounded down, as one
  // more would; one, of whatever there is.
  int whole() const {
    constexpr double kMost = 1 << 20;
    return static_cast<int>(std::clamp(cores, 1.0, kMost));
  }
};

// Those that this process is under, the smallest first. Reads files below
// `root`: a test has its own.
std::vector<CoreQuota> coreQuotas(const std::string& root = {});

// The same, read once in a process. Never changes while it is used: see
// replaceCoreQuotas().
const std::vector<CoreQuota>& ownCoreQuotas();

// For tests: instead of what the kernel has said, in a process without other
// threads.
void replaceCoreQuotas(std::vector<CoreQuota> quotas);

// How many threads of this process may be busy at once: by the calling thread's
// cores and by the quotas. At least one.
int usableCores();

}  // namespace internal
GLOO_NAMESPACE_END
