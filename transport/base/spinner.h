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
  // At most, where the clock is a device's, to be read by a system call (as in
  // most guests): a look may then cost more than a message.
  static constexpr int kMostCost = 64;

  // How much more than usual a look costs here. Measured once.
  static int costOfALook() {
    return internal::madeOnce([] {
      auto least = Clock::duration::max();
      for (int i = 0; i < 8; i++) {
        const auto before = Clock::now();
        least = std::min(least, Clock::now() - before);
      }
      return static_cast<int>(
          std::clamp<int64_t>(least / kCheap, 1, kMostCost));
    });
  }

  // The rounds until the next look, where so many have taken that long: a look
  // takes no more time than kLookEvery of the shortest rounds. (Where all of a
  // program is emulated, a round takes as long as a look.)
  static int roundsPerLook(int cost, std::chrono::nanoseconds taken,
                           uint32_t rounds) {
    const int64_t round = std::max<int64_t>(taken / kCheap / rounds, 1);
    return kLookEvery * static_cast<int>(std::max<int64_t>(cost / round, 1));
  }

  enum class Next { kPoll, kYield, kBlock };

  // *lookEvery, the rounds between two looks, is kept between waits.
  Spinner(Yielder& yielder, int* lookEvery, bool crowded, bool busy,
          std::chrono::microseconds budget)
      : yielder_(yielder),
        lookEvery_(*lookEvery),
        crowded_(crowded),
        busy_(busy),
        budget_(budget) {
    reset();
  }

  void reset() {
    rounds_ = 0;
    lookedAfter_ = 0;
    nextLook_ = static_cast<uint32_t>(lookEvery_);
  }

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
    return rounds_ == nextLook_ ? look() : Next::kPoll;
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
  static constexpr uint32_t kCrowdedPolls = 2;
  static constexpr uint32_t kCrowdedYields = 30;
  static constexpr std::chrono::nanoseconds kCheap{100};

  Next look() {
    const auto now = Clock::now();
    if (lookedAfter_ == 0) {
      since_ = now;
      until_ = now + budget_;
      yieldAt_ = now + yielder_.patience();
    } else {
      lookEvery_ =
          roundsPerLook(costOfALook(), now - looked_, rounds_ - lookedAfter_);
    }
    looked_ = now;
    lookedAfter_ = rounds_;
    nextLook_ = rounds_ + static_cast<uint32_t>(lookEvery_);
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
  int& lookEvery_;
  const bool crowded_;
  const bool busy_;
  const std::chrono::microseconds budget_;
  uint32_t rounds_ = 0;       // since something moved
  uint32_t lookedAfter_ = 0;  // of them; 0: not yet
  uint32_t nextLook_ = 0;
  Clock::time_point looked_;
  Clock::time_point since_;
  Clock::time_point until_;
  Clock::time_point yieldAt_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
