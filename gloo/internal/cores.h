// Where the calling thread may run, and moving it to another core, for once.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <thread>

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

}  // namespace internal
GLOO_NAMESPACE_END
