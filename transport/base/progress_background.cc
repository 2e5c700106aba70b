// The background thread of a progress domain.
#include <pthread.h>

#include <chrono>
#include <ctime>
#include <exception>

#include "gloo/common/logging.h"
#include "transport/base/progress.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

using std::chrono::milliseconds;
using Clock = Deadline::Clock;

// In a row, before a thread that is at work: one for each millisecond before.
constexpr int kMostEvasions = 16;

// That this thread has taken.
std::chrono::nanoseconds processorTime() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) +
         std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

void ProgressDomain::backgroundLoop() {
  pthread_setname_np(pthread_self(), "gloo-progress");
  while (doze()) {
    tendSafely();
  }
}

// What a poller throws is nobody's here: the next round goes on where it can.
void ProgressDomain::tendSafely() {
  try {
    tend();
  } catch (const std::exception& e) {
    {
      const Lock lock = this->lock();
      backgroundAsleep_ = false;
      wakeReadySleepers();
    }
    if (complaints_.allows(Clock::now())) {
      GLOO_WARN("the background thread goes on after: ", e.what());
    }
  }
}

// Keeps out of the way while threads drive. Takes no lock: a spinning driver is
// not disturbed. Returns when nobody has driven for a while; false: to stop.
bool ProgressDomain::doze() {
  while (true) {
    const uint64_t before = drives_;
    dozeOnce();
    if (stopping_) {
      return false;
    }
    if (drives_ != before) {
      continue;
    }
    if (!driving_) {
      return true;
    }
    // One long wait: its driver rings when it leaves.
    backgroundDeep_ = true;
    if (driving_) {
      waitReadable(backgroundBell_.get(), -1, Deadline());
    }
    backgroundDeep_ = false;
  }
}

// One that the bell has ended cost less than a look.
void ProgressDomain::dozeOnce() {
  const auto before = dozing_.isLong() ? Dozing::Cost(0) : processorTime();
  if (waitReadable(backgroundBell_.get(), dozing_.length())) {
    silence(backgroundBell_);
  } else if (!dozing_.isLong()) {
    dozing_.took(processorTime() - before);
  }
}

// Nobody waits: moves what is in flight until nothing moves, then sleeps until
// something arrives. Returns when a thread drives, or at once where another
// thread is at work: that one will wait, most likely, and should not find that
// the lock was taken to hand over something long. If it goes on like that
// without polling (one that posts to Soft-RoCE moves the bytes in that call,
// and may find a dozen messages sent in one round) it is asked for the lock,
// once: to lie down armed would be to wake up for each of its messages.
void ProgressDomain::tend() {
  Lock lock(mutex_, std::try_to_lock);
  bool othersWork = !lock.owns_lock();
  if (othersWork) {
    evasions_ += static_cast<int>(dozing_.length().count());
    if (evasions_ < kMostEvasions) {
      return;
    }
    lockForBackground(lock);
  }
  evasions_ = 0;
  const uint64_t before = drives_;
  while (!stopping_ && !driving_ && drives_ == before) {
    if (poll()) {
      dozing_.beBrief();
      wakeReadySleepers();
      letOthersIn(lock);
      continue;
    }
    if (othersWork) {
      return;
    }
    backgroundAsleep_ = true;
    if (armAll() || poll()) {
      backgroundAsleep_ = false;
      continue;
    }
    const milliseconds timer = nextTimer();
    const Deadline until = timer == milliseconds::max()
                               ? Deadline()
                               : Deadline(Clock::now() + timer);
    lock.unlock();
    waitReadable(epoll_.get(), backgroundBell_.get(), until);
    othersWork = !lock.try_lock();
    if (othersWork) {
      lockForBackground(lock);
    }
    backgroundAsleep_ = false;
    silence(backgroundBell_);
  }
}

void ProgressDomain::lockForBackground(Lock& lock) {
  backgroundWants_ = true;
  lockInTurn(lock);
  backgroundWants_ = false;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
