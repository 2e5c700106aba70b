// Who is woken when something has changed, or nobody drives.
#include <utility>

#include "transport/base/progress.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

void ProgressDomain::wake(Sleeper& sleeper) { futexWake(sleeper.woken); }

void ProgressDomain::wakeReady() {
  for (Sleeper* sleeper : sleepers_) {
    if (sleeper->woken.load(std::memory_order_relaxed) == 0 &&
        (*sleeper->ready)()) {
      wake(*sleeper);
    }
  }
}

// Nobody drives: a sleeper that runs next will, or else the background thread.
void ProgressDomain::leaveRole() {
  for (Sleeper* sleeper : sleepers_) {
    if (sleeper->woken.load(std::memory_order_relaxed) != 0) {
      return;  // it has not run yet; it will look for itself
    }
  }
  if (!sleepers_.empty()) {
    counters_.handoffs++;
    wake(*sleepers_.front());
  } else if (backgroundDeep_) {
    backgroundDeep_ = false;
    ring(backgroundBell_);
  }
}

void ProgressDomain::changed() {
  wakeReadySleepers();
  ringAsleep();
}

// The driver's wait may be what has ended, too.
void ProgressDomain::wakeTouched() {
  touched_ = false;
  wakeReadySleepers();
  if (driverAsleep_ != Asleep::kNot && (*driverReady_)()) {
    ringDriver();
  }
}

// Once for each sleep.
void ProgressDomain::ringDriver() {
  const Asleep how = std::exchange(driverAsleep_, Asleep::kNot);
  if (how == Asleep::kInEpoll) {
    ring(driverBell_);
  } else if (how == Asleep::kOnWords) {
    futexWake(driverWord_);
  }
}

void ProgressDomain::ringAsleep() {
  ringDriver();
  if (std::exchange(backgroundAsleep_, false)) {
    ring(backgroundBell_);
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
