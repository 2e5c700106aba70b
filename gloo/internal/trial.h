// Which of two ways to do the same takes less time, where that depends on the
// machine, and on where threads run just now: found out by doing it, now and
// then.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// One thread at a time. Each call is made by run(), or next() says that it is
// done; goesSecond() says how. Once both ways have been tried (isOver())
// somebody chooses.
//
// Of the calls of a period (more than twice kTried) the first kTried go the
// first way, as many the second one. What a call takes may depend on how those
// before it went, so the first kUntimed of each are not timed.
template <int kTried, int kUntimed, int kPeriod>
class Trial {
 public:
  static constexpr int kCalls = kPeriod;  // of a period
  static constexpr int kTries = kTried;   // of them, one way

  constexpr Trial() = default;
  constexpr explicit Trial(bool second) : second_(second) {}

  bool goesSecond() const {
    return call_ < 2 * kTried ? call_ >= kTried : second_;
  }
  bool isTimed() const {
    return call_ < 2 * kTried && call_ % kTried >= kUntimed;
  }
  bool isOver() const { return call_ == 2 * kTried; }

  // The next call. work() returns what its time in ns is to be multiplied by;
  // 0: it does not count.
  template <typename Work>
  void run(const Work& work) {
    if (!isTimed()) {
      work();
      next();
      return;
    }
    using Clock = std::chrono::steady_clock;
    const auto since = Clock::now();
    const double share = work();
    const std::chrono::duration<double, std::nano> time = Clock::now() - since;
    next(time.count() * share);
  }

  // Of each way the least counts: a thread may be stopped in between. 0: not
  // known.
  void next(double time = 0) {
    double& least = least_[goesSecond() ? 1 : 0];
    if (time > 0) {
      least = least == 0 ? time : std::min(least, time);
    }
    call_++;
    if (call_ == kPeriod) {
      beginAgain();
    }
  }
  // Of the first way, and of the second one; 0: not known.
  const std::array<double, 2>& least() const { return least_; }

  // For the rest of the period.
  void choose(bool second) { second_ = second; }
  // Once both ways have been tried: the second one, if it took less than that
  // share of the first one's time.
  void chooseOnceOver(double share = 1) {
    if (isOver()) {
      choose(least_[1] < share * least_[0]);
    }
  }
  // A new period begins.
  void beginAgain() {
    call_ = 0;
    least_ = {};
  }

 private:
  bool second_ = false;
  int call_ = 0;
  std::array<double, 2> least_{};
};

}  // namespace internal
GLOO_NAMESPACE_END
