// Giving the core away to a neighbour, as long as that serves a waiter. One
// thread at a time.
#pragma once

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "transport/base/core_spread.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Who yields stays on its core, behind all others there. So a waiter sleeps
// instead at times:
// - A neighbour that computes has the core for a whole slice, milliseconds; who
//   sleeps gets it back when there is something to do. It looks for a while
//   before: two ranks that sleep at once have to wake each other at every
//   message, long after both have their cores again.
// - Two ranks that the scheduler has put on one core stay there, each message
//   waiting for a switch, even if another core is idle: Linux looks for an idle
//   core on behalf of a thread that wakes up. Once is enough for that. Where no
//   core is idle it leaves them together, so they also move to cores of theirs.
class Yielder {
 public:
  using Clock = Deadline::Clock;

  // How long to look for what is awaited before the next yield: short where two
  // ranks share a core, long where nobody wants it, as a system call is then
  // most of what a message takes, and makes the peer wait long enough to yield
  // as well.
  Clock::duration patience() const { return patience_; }

  // Whether it is better to sleep, after a wait since `since`.
  bool shouldSleep(Clock::time_point since, Clock::time_point now) const {
    return now < apartUntil_ ||
           (now < sleepUntil_ && now - since >= kBeforeSleep);
  }

  // Unless it will be better to sleep. `spread`: where this rank belongs.
  void yield(Clock::time_point now, CoreSpread& spread) {
    if (now < sleepUntil_) {
      return;
    }
    sched_yield();
    const auto end = Clock::now();
    const auto taken = end - now;
    if (taken < kNobody || !switched()) {
      switches_ = 0;
      patience_ = std::min(2 * patience_,
                           taken < kNobody ? kMostPatience : kMostWhereSlow);
      return;
    }
    patience_ = kLeastPatience;
    if (taken >= kSlice) {
      sleepUntil_ = end + slices_.next(end);
      spread.look(end);
    } else if (++switches_ >= kSwitches && end >= tryAgain_) {
      switches_ = 0;
      apartUntil_ = end + kOnce;
      tryAgain_ = end + meetings_.next(end);
      spread.look(end);
    }
  }

 private:
  using Time = Clock::duration;

  // Twice as long as the last one, if that has ended not long ago.
  class Period {
   public:
    Time next(Clock::time_point now) {
      last_ =
          now < until_ + 4 * last_ ? std::min(2 * last_, kLongest) : kShortest;
      until_ = now + last_;
      return last_;
    }

   private:
    static constexpr Time kShortest = std::chrono::milliseconds(1);
    static constexpr Time kLongest = std::chrono::milliseconds(64);
    Time last_ = kShortest;
    Clock::time_point until_{};
  };

  // Whether the thread has lost its core since this was last asked.
  bool switched() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return std::exchange(involuntary_, usage.ru_nivcsw) != usage.ru_nivcsw;
  }

  // Measured: a yield to nobody takes 0.2 us, two switches 1 us.
  static constexpr Time kNobody = std::chrono::nanoseconds(700);
  static constexpr Time kSlice = std::chrono::microseconds(200);
  static constexpr Time kOnce = std::chrono::microseconds(20);
  // Measured, allreduce of 4 bytes, 2 ranks beside 2 programs that compute on 2
  // cores: 43 us with 0, 18 us with 5, 13 us with 20, 14 us with 100.
  static constexpr Time kBeforeSleep = std::chrono::microseconds(20);
  static constexpr int kSwitches = 8;  // in a row
  // Two ranks on one core, on a machine that is busy otherwise, wait for the
  // first at each message: with 8 us a 1 KiB allreduce took three times as
  // long.
  static constexpr Time kLeastPatience = std::chrono::microseconds(1);
  static constexpr Time kMostPatience = std::chrono::microseconds(16);
  // Where a yield to nobody takes longer than two switches do elsewhere, as in
  // an emulated guest, so does a message. (Soft-RoCE in a guest: with 16 us one
  // message in five waited for a yield to end, so one in seventy.)
  static constexpr Time kMostWhereSlow = std::chrono::microseconds(64);

  Time patience_ = kLeastPatience;
  long involuntary_ = 0;
  int switches_ = 0;
  Period slices_;
  Period meetings_;
  Clock::time_point sleepUntil_{};
  Clock::time_point apartUntil_{};
  Clock::time_point tryAgain_{};
};

}  // namespace transport::base
GLOO_NAMESPACE_END
