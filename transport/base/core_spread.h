// Ranks that share cores, and give theirs away while they wait, hardly ever
// sleep. Linux then leaves them where they are for hundreds of milliseconds,
// even if all are on one core and another is idle: it moves threads that wake
// up, and those that wait for a core without having run lately. (Measured on 2
// cores, allreduce of 4 bytes: 8 ranks over shared memory 16 us instead of 5, 4
// ranks over TCP 38 instead of 21.) So a rank that waits elsewhere than where
// it would be if they were spread evenly moves there now and then.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "gloo/common/deadline.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Thread-safe.
class CoreSpread {
 public:
  using Clock = Deadline::Clock;

  // There are so many ranks on this host, of which this is the `index`th.
  void setRanks(int index, int ranks) {
    index_.store(index, std::memory_order_relaxed);
    ranks_.store(ranks, std::memory_order_relaxed);
  }

  int ranks() const { return ranks_.load(std::memory_order_relaxed); }

  // A thread of this rank's is about to give its core away. Nearly always a few
  // instructions; true: system calls.
  bool look() {
    const unsigned looks = looks_.load(std::memory_order_relaxed);
    looks_.store(looks + 1, std::memory_order_relaxed);
    return looks % kLooksPerClock == 0 && look(Clock::now());
  }

  // The same, now, for a thread that has found a neighbour on its core.
  bool look(Clock::time_point now);

 private:
  static constexpr unsigned kLooksPerClock = 16;
  static constexpr int64_t kShortestMs = 1;
  static constexpr int64_t kLongestMs = 1024;

  std::atomic<int> index_{0};
  std::atomic<int> ranks_{0};
  std::atomic<unsigned> looks_{0};
  std::atomic<Clock::time_point> next_{};  // never, once the kernel refuses
  std::atomic<int64_t> pauseMs_{kShortestMs};
};

}  // namespace transport::base
GLOO_NAMESPACE_END
