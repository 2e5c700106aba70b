// How a driver spends the time in which nothing moves. One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "gloo/internal/fork.h"
#include "transport/base/progress.h"
#include "transport/base/yielder.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Decides what a driver does after a round in which nothing moved.
class ProgressDomain::Spinner {
 public:
  // Looking at the clock costs as much as a round of polling shared memory.
  static constexpr int kLookEvery = 16;

  // More rounds where the clock is a device's, to be read by a system call (as
  // in most guests): a look may then cost more than a message. Measured once.
  static int roundsPerLook() {
    return internal::madeOnce([] {
      auto least = Clock::duration::max();
      for (int i = 0; i < 8; i++) {
        const auto before = Clock::now();
        least = std::min(least, Clock::now() - before);
      }
      const auto times = least / kCheapLook;
      return kLookEvery * static_cast<int>(std::clamp<int64_t>(times, 1, 64));
    });
  }

  enum class Next { kPoll, kYield, kBlock };

  Spinner(Yielder& yielder, int lookEvery, bool crowded, bool busy,
          std::chrono::microseconds budget)
      : yielder_(yielder),
        lookEvery_(lookEvery),
        crowded_(crowded),
        busy_(busy),
        budget_(budget) {}

  void reset() { rounds_ = 0; }

  Next next() {
    rounds_++;
    if (crowded_) {
      if (rounds_ <= kCrowdedPolls) {
        return Next::kPoll;
      }
      const bool tired = rounds_ > kCrowdedPolls + kCrowdedYields;
      return tired && !busy_ ? Next::kBlock : Next::kYield;
    }
    if (budget_.count() == 0 && !busy_) {
      return Next::kBlock;
    }
    return rounds_ % lookEvery_ == 0 ? look() : Next::kPoll;
  }

  // What kYield asks for.
  void yield(CoreSpread& spread) {
    if (crowded_) {
      spread.look();
      sched_yield();
    } else {
      yielder_.yield(Clock::now(), spread);
    }
  }

 private:
  using Clock = Deadline::Clock;

  // Rounds of polling before a waiter that shares its core gives it away, and
  // how often it does that before it sleeps (measured).
  static constexpr int kCrowdedPolls = 2;
  static constexpr int kCrowdedYields = 30;
  static constexpr std::chrono::nanoseconds kCheapLook{100};

  Next look() {
    const auto now = Clock::now();
    if (rounds_ == lookEvery_) {
      since_ = now;
      until_ = now + budget_;
      yieldAt_ = now + yielder_.patience();
    }
    if (now >= until_ && !busy_) {
      return Next::kBlock;
    }
    if (now < yieldAt_) {
      return Next::kPoll;
    }
    if (yielder_.shouldSleep(since_, now) && !busy_) {
      return Next::kBlock;
    }
    // The scheduler sometimes puts us on the core that the peer needs.
    yieldAt_ = now + yielder_.patience();
    return Next::kYield;
  }

  Yielder& yielder_;
  const int lookEvery_;
  const bool crowded_;
  const bool busy_;
  const std::chrono::microseconds budget_;
  int rounds_ = 0;
  Clock::time_point since_;
  Clock::time_point until_;
  Clock::time_point yieldAt_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
