#include "transport/base/core_spread.h"

#include <algorithm>

#include "gloo/internal/cores.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

bool CoreSpread::look(Clock::time_point now) {
  const int ranks = ranks_.load(std::memory_order_relaxed);
  if (ranks == 0 || now < next_.load(std::memory_order_relaxed)) {
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
  const int home =
      internal::coreAt(allowed, static_cast<size_t>(index * cores / ranks));
  if (home >= 0 && home != sched_getcpu() &&
      !internal::moveToCore(home, allowed)) {
    next_.store(Clock::time_point::max(), std::memory_order_relaxed);
  }
  return true;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
