#include "transport/base/progress.h"

#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "gloo/common/env.h"
#include "gloo/common/error.h"
#include "gloo/internal/cores.h"
#include "gloo/internal/thread.h"
#include "transport/base/spinner.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

using std::chrono::milliseconds;
using Clock = Deadline::Clock;

// Rounds of a glance, at least: longer than a peer takes that answers at once.
constexpr int kGlances = 64;
// Rounds of which one includes the pollers that rest, which costs several
// rounds, system calls and looks at the clock.
constexpr uint32_t kRestRounds = 512;
constexpr std::chrono::microseconds kDefaultSpin{500};
// Past a deadline, while each round moves something: enough for what lies in a
// socket, and little enough to be late by; so many rounds even if they take
// long.
constexpr milliseconds kLastLook{5};
constexpr int kLastRounds = 4;
// How long a driver sleeps on words, which do not tell of the end of a peer,
// nor of calls. Who has not been woken until then sleeps on in epoll: that
// costs a long wait one wake-up.
constexpr milliseconds kBrief{4};

}  // namespace

ProgressDomain::ProgressDomain()
    : lookEvery_(Spinner::kLookEvery),
      spinBudget_(Environment::fromEnvironment().spin.value_or(kDefaultSpin)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      driverBell_(makeBell()),
      backgroundBell_(makeBell()) {
  if (!epoll_) {
    GLOO_THROW_IO_EXCEPTION("epoll_create1: ", std::strerror(errno),
                            " (raise the limit of open files, ulimit -n)");
  }
  sleepers_.reserve(64);
  FutexWords::supported();  // found out now: the first wait allocates nothing
  SleepersBarrier::supported();  // and before this makes it several threads
  thread_ = std::make_unique<std::thread>(
      internal::startThread([this] { backgroundLoop(); }));
}

ProgressDomain::~ProgressDomain() {
  if (origin_.inherited()) {
    // The thread exists in the parent only: here its id may be that of another
    // thread by now, or lead nowhere.
    static_cast<void>(thread_.release());
    return;
  }
  stopping_ = true;
  ring(backgroundBell_);
  thread_->join();
}

void ProgressDomain::lockInTurn(Lock& lock) {
  wanted_.fetch_add(1, std::memory_order_relaxed);
  lock.lock();
  wanted_.fetch_sub(1, std::memory_order_relaxed);
}

void ProgressDomain::add(Poller& poller) {
  pollers_.push_back(&poller);
  if (poller.wakeFd() >= 0) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, poller.wakeFd(), &event) != 0) {
      pollers_.pop_back();
      GLOO_THROW_IO_EXCEPTION("epoll_ctl: ", std::strerror(errno));
    }
  }
  poller.domain_ = this;
  changed();
}

void ProgressDomain::remove(Poller& poller) {
  poller.domain_ = nullptr;
  std::erase(pollers_, &poller);
  if (poller.wakeFd() >= 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, poller.wakeFd(), nullptr);
  }
}

bool ProgressDomain::poll() {
  const bool all = ++rounds_ % kRestRounds == 0;
  bool moved = false;
  for (size_t i = 0; i < pollers_.size(); i++) {  // poll() may add pollers
    moved |= (all || !pollers_[i]->resting()) && pollers_[i]->poll();
  }
  return moved;
}

// Who drives, until the end of the scope. A poller that throws, mostly for want
// of memory, must not leave a role behind that nobody plays: all others would
// sleep for ever. The lock is held at both ends.
class ProgressDomain::Role {
 public:
  explicit Role(ProgressDomain& domain) : domain_(domain) {
    domain_.driving_ = true;
    domain_.drives_++;
  }
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;
  ~Role() {
    domain_.driverAsleep_ = Asleep::kNot;
    domain_.driving_ = false;
    if (std::uncaught_exceptions() > exceptions_) {
      domain_.wakeReadySleepers();  // other pollers have moved something
      domain_.leaveRole();
    }
  }

 private:
  ProgressDomain& domain_;
  const int exceptions_ = std::uncaught_exceptions();
};

bool ProgressDomain::wait(Lock& lock, const Ready& ready, Deadline deadline,
                          Manner manner) {
  bool done = ready();
  while (!done) {
    if (driving_.load(std::memory_order_relaxed)) {
      sleep(lock, ready, deadline);
    } else {
      drive(lock, ready, deadline, manner);
    }
    done = ready();
    if (!done && deadline.expired()) {
      done = lastLook(ready);
      break;
    }
  }
  if (!driving_.load(std::memory_order_relaxed)) {
    leaveRole();
  }
  return done;
}

// This process may have been stopped, and what is awaited have come meanwhile.
bool ProgressDomain::lastLook(const Ready& ready) {
  std::optional<Role> role;
  if (!driving_.load(std::memory_order_relaxed)) {
    role.emplace(*this);
  }
  rounds_ |= kRestRounds - 1;  // the first includes pollers that rest
  const auto end = Clock::now() + kLastLook;
  for (int i = 0; !ready() && (i < kLastRounds || Clock::now() < end); i++) {
    if (!visit()) {
      break;
    }
  }
  return ready();
}

// Nobody else has the lock, drives or sleeps on what we poll, so that no role
// need be taken; but the background thread sees that somebody polls.
bool ProgressDomain::glance(const Ready& ready) {
  if (driving_.load(std::memory_order_relaxed) || backgroundAsleep_ ||
      crowded_.load(std::memory_order_relaxed)) {
    return false;
  }
  drives_.store(drives_.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
  const int rounds = std::max(kGlances, lookEvery_);
  Poller* only = onlyAwake();
  for (int i = 0; i < rounds && wanted_.load(std::memory_order_relaxed) == 0;
       i++) {
    const bool all = only == nullptr || (rounds_ + 1) % kRestRounds == 0;
    if (!all) {
      rounds_++;
    }
    if (all ? poll() : only->poll()) {
      wakeReadySleepers();
      if (ready()) {
        return true;
      }
      only = onlyAwake();
    }
  }
  return false;
}

// Who sleeps has armed the pollers, which our polling takes back.
bool ProgressDomain::visit() {
  drives_.store(drives_.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
  changed();
  const bool moved = poll();
  if (moved) {
    wakeReadySleepers();
  }
  return moved;
}

void ProgressDomain::drive(Lock& lock, const Ready& ready, Deadline deadline,
                           Manner manner) {
  const Role role(*this);
  // Our polling takes back what it has armed. Once is enough: it may take a
  // while to get the lock.
  if (std::exchange(backgroundAsleep_, false)) {
    ring(backgroundBell_);
  }
  const bool patient = manner == Manner::kSleep;
  Spinner spinner(yielder_, &lookEvery_,
                  !patient && crowded_.load(std::memory_order_relaxed),
                  !patient && busyPoll_.load(std::memory_order_relaxed),
                  patient ? std::chrono::microseconds(0) : spinBudget_);
  bool brief = !patient;
  for (int movedRounds = 0;;) {
    const bool moved = poll();
    if (moved) {
      spinner.reset();
      brief = !patient;
      wakeReadySleepers();
    }
    if (ready()) {
      break;
    }
    letOthersIn(lock);
    if (moved) {
      // What others of this device move is no reason to wait past a deadline.
      const bool due = ++movedRounds % Spinner::kLookEvery == 0;
      if ((std::exchange(lookDue_, false) || due) && deadline.expired()) {
        break;
      }
      continue;
    }
    const auto next = spinner.next();
    if (next == Spinner::Next::kYield) {
      lock.unlock();
      spinner.yield(spread_);
      lock.lock();
    } else if (next == Spinner::Next::kBlock) {
      block(lock, ready, deadline, &brief);
    }
    if (next != Spinner::Next::kPoll && deadline.expired()) {
      break;
    }
  }
}

// To sleep: publish it, arm, poll once more, block. The lock orders this with
// all threads of the process; the pollers' descriptors and words with other
// processes. *brief: the wait may be a short one; it is not when that is over.
void ProgressDomain::block(Lock& lock, const Ready& ready, Deadline deadline,
                           bool* brief) {
  const bool onWords = *brief && wordsSuffice();
  driverReady_ = &ready;
  driverAsleep_ = onWords ? Asleep::kOnWords : Asleep::kInEpoll;
  // Others may have had the lock since ready() was last asked.
  if (ready() || (onWords ? armWords() : armAll()) || poll()) {
    driverAsleep_ = Asleep::kNot;
    wakeReadySleepers();
    return;
  }
  counters_.blockingWaits++;
  const milliseconds timer = nextTimer();
  const milliseconds longest = onWords ? std::min(timer, kBrief) : timer;
  if (longest != milliseconds::max()) {
    deadline = Deadline(std::min(deadline.at(), Clock::now() + longest));
  }
  lock.unlock();
  if (onWords) {
    *brief = words_.wait(deadline);
  } else {
    waitReadable(epoll_.get(), driverBell_.get(), deadline);
  }
  lock.lock();
  driverAsleep_ = Asleep::kNot;
  if (!onWords) {
    silence(driverBell_);
  }
}

bool ProgressDomain::wordsSuffice() const {
  if (!FutexWords::supported()) {
    return false;
  }
  size_t count = 1;  // our own
  for (const Poller* poller : pollers_) {
    const std::optional<size_t> more = poller->wordsToArm();
    if (!more.has_value() || (count += *more) > FutexWords::kMost) {
      return false;
    }
  }
  return count > 1;
}

bool ProgressDomain::armWords() {
  driverWord_.store(0, std::memory_order_relaxed);
  words_.clear();
  words_.add(driverWord_, 0, false);
  bool again = false;
  for (Poller* poller : pollers_) {
    again |= poller->armWords(words_);
  }
  return again;
}

void ProgressDomain::sleep(Lock& lock, const Ready& ready, Deadline deadline) {
  Sleeper me{&ready};
  sleepers_.push_back(&me);
  counters_.sleeps++;
  lock.unlock();
  futexWait(me.woken, deadline);
  lock = this->lock();
  std::erase(sleepers_, &me);
}

// A thread that wants the lock would starve if the driver took it back at once.
void ProgressDomain::letOthersIn(Lock& lock) {
  const auto isWanted = [this] {
    return wanted_.load(std::memory_order_relaxed) > 0;
  };
  if (isWanted()) {
    giveWay(lock, isWanted);
  }
}

bool ProgressDomain::armAll() {
  bool again = false;
  for (Poller* poller : pollers_) {
    again |= poller->arm();
  }
  return again;
}

milliseconds ProgressDomain::nextTimer() const {
  milliseconds next = milliseconds::max();
  for (const Poller* poller : pollers_) {
    next = std::min(next, poller->nextTimer());
  }
  return next;
}

void ProgressDomain::setLocalRanks(int n, int before) {
  if (n > spread_.ranks()) {
    crowded_.store(n > internal::usableCores(), std::memory_order_relaxed);
    spread_.setRanks(before, n);
  }
}

ProgressDomain::Counters ProgressDomain::counters() const { return counters_; }

}  // namespace transport::base
GLOO_NAMESPACE_END
