// A point in time by which an operation must have ended. Made once, where the
// operation starts, and passed down: a timeout is never restarted on the way.
// Immutable value; thread-safe.
#pragma once

#include <chrono>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // Never expires.
  constexpr Deadline() : at_(Clock::time_point::max()) {}

  explicit constexpr Deadline(Clock::time_point at) : at_(at) {}

  // `timeout` from now; zero or less means never, as gloo::kNoTimeout does.
  static Deadline after(std::chrono::milliseconds timeout) {
    if (timeout <= std::chrono::milliseconds::zero()) {
      return Deadline();
    }
    const auto now = Clock::now();
    if (timeout > std::chrono::hours(24 * 365 * 10)) {
      return Deadline();  // now + timeout could overflow
    }
    return Deadline(now + timeout);
  }

  bool never() const { return at_ == Clock::time_point::max(); }
  bool expired() const { return !never() && Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }

  // Time left, never negative; milliseconds::max() when it never expires.
  std::chrono::milliseconds left() const {
    if (never()) {
      return std::chrono::milliseconds::max();
    }
    const auto now = Clock::now();
    return at_ <= now  // first: time_point::min() - now would overflow
               ? std::chrono::milliseconds::zero()
               : std::chrono::ceil<std::chrono::milliseconds>(at_ - now);
  }

 private:
  Clock::time_point at_;
};

GLOO_NAMESPACE_END
