#include "transport/base/core_spread.h"

#include <algorithm>
#include <cstring>

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

// The `n`th of the set.
int coreOf(const cpu_set_t& set, int n) {
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (CPU_ISSET(core, &set) && n-- == 0) {
      return core;
    }
  }
  return -1;
}

}  // namespace

bool CoreSpread::lookAt(Clock::time_point now) {
  const int ranks = ranks_.load(std::memory_order_relaxed);
  if (ranks == 0 || now < next_.load(std::memory_order_relaxed) ||
      refused_.load(std::memory_order_relaxed)) {
    return false;
  }
  const int64_t pause = pauseMs_.load(std::memory_order_relaxed);
  next_.store(now + std::chrono::milliseconds(pause),
              std::memory_order_relaxed);
  pauseMs_.store(std::min(2 * pause, kLongestMs), std::memory_order_relaxed);
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return true;  // more cores than such a set has
  }
  const int64_t cores = CPU_COUNT(&allowed);
  const int index = index_.load(std::memory_order_relaxed);
  const int home = coreOf(allowed, static_cast<int>(index * cores / ranks));
  if (home >= 0 && home != sched_getcpu()) {
    move(home, allowed);
  }
  return true;
}

// The thread may go on where it might before, but begins there.
void CoreSpread::move(int core, const cpu_set_t& allowed) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  if (sched_setaffinity(0, sizeof(only), &only) != 0) {
    refused_.store(true, std::memory_order_relaxed);
    return;
  }
  if (sched_setaffinity(0, sizeof(allowed), &allowed) == 0) {
    return;
  }
  // None of them is this process's any more: all that are.
  cpu_set_t any;
  std::memset(&any, 0xff, sizeof(any));
  sched_setaffinity(0, sizeof(any), &any);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
