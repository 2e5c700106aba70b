// Who waits, drives. A progress domain belongs to a device: it owns the lock
// under which all protocol state of that device lives, the pollers that move
// bytes, and the rule by which threads take turns at driving them.
//
// A waiting thread becomes the driver if there is none: it polls, spins for a
// budget, then blocks in the kernel until an event or its deadline. Other
// waiters sleep on a futex of their own. A driver whose wait is
// over hands the role to a sleeper. When nobody waits, the background thread
// sees to it that everything in flight moves on: it looks each millisecond
// whether anybody has driven since the last look (each four where it has found
// nothing to do for a while, since looks disturb who drives; each 64 at most
// where processors are emulated), and if nobody has, does so itself; with
// nothing going on it sleeps in the kernel.
// tests/model/progress.pml is a model of the hand-over and of falling asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "transport/base/bell.h"
#include "transport/base/core_spread.h"
#include "transport/base/dozing.h"
#include "transport/base/fork.h"
#include "transport/base/rate_limit.h"
#include "transport/base/socket.h"
#include "transport/base/yielder.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class ProgressDomain;

// Something that the driver polls. Owned by whoever added it.
class Poller {
 public:
  virtual ~Poller() = default;
  // Moves what can be moved without blocking; true if anything did.
  virtual bool poll() = 0;
  // Readable when poll() has something to do and the poller is armed; -1: none.
  virtual int wakeFd() const = 0;
  // Before sleeping: from now on what arrives makes wakeFd() readable. True
  // when poll() must be called again before sleeping. Lazy: not called while
  // anybody spins.
  virtual bool arm() { return false; }
  // Where all that has to be known at once comes through memory, a driver may
  // sleep on words of it instead, for some milliseconds at most, which takes
  // fewer system calls. How many words that needs; none: wakeFd() is needed.
  virtual std::optional<size_t> wordsToArm() const {
    return resting() || wakeFd() < 0 ? std::optional<size_t>(0) : std::nullopt;
  }
  // As arm(), which is not called then; adds so many words at most.
  virtual bool armWords(FutexWords& /*words*/) { return wakeFd() < 0 && arm(); }
  // Shortest time after which poll() wants to be called without an event, for
  // retries and deadlines of its own; milliseconds::max(): never.
  virtual std::chrono::milliseconds nextTimer() const {
    return std::chrono::milliseconds::max();
  }
  // Nothing waits for poll() in particular: a driver that spins leaves it out
  // of most rounds. Not so once it was armed.
  bool resting() const { return resting_; }
  // It has got something to do that no event will tell of, such as bytes that
  // wait for room: who sleeps polls again. REQUIRES the domain's lock.
  inline void nudge();

 protected:
  void rest(bool on) { resting_ = on; }
  // poll() took so long that the driver's deadline may have passed.
  inline void lookAtDeadlines();

 private:
  friend class ProgressDomain;
  ProgressDomain* domain_ = nullptr;
  bool resting_ = false;
};

class ProgressDomain {
 public:
  // Who gives it back wakes the waiters that touched() was called for.
  class Mutex {
   public:
    explicit Mutex(ProgressDomain& domain) : domain_(domain) {}
    void lock() { futex_.lock(); }
    bool try_lock() { return futex_.try_lock(); }
    void unlock() {
      if (domain_.touched_) {
        domain_.wakeTouched();
      }
      futex_.unlock();
    }

   private:
    ProgressDomain& domain_;
    FutexLock futex_;
  };
  using Lock = std::unique_lock<Mutex>;
  using Ready = std::function<bool()>;

  struct Counters {
    uint64_t blockingWaits = 0;  // of drivers
    uint64_t sleeps = 0;         // of threads that found a driver
    uint64_t handoffs = 0;
  };

  ProgressDomain();
  ~ProgressDomain();  // REQUIRES: no waiter; stops the background thread
  ProgressDomain(const ProgressDomain&) = delete;
  ProgressDomain& operator=(const ProgressDomain&) = delete;

  // The lock of all state in the domain. Threads that want it are let in
  // between two polls of a spinning driver.
  Lock lock() {
    Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      lockInTurn(lock);
    }
    return lock;
  }

  // REQUIRES the lock.
  void add(Poller& poller);
  void remove(Poller& poller);

  // One round of all pollers; true if anything moved. REQUIRES the lock.
  bool poll();

  // Drives, or sleeps while another thread drives, until ready() or the
  // deadline; returns ready(). Throws what a poller throws that it polls: then
  // another waiter drives. ready is called with the lock held, by this
  // thread or, on its behalf, by any that drives or gives the lock back: it
  // must only read, and throw nothing. REQUIRES the lock, which is given up
  // meanwhile and held again on return.
  // kSleep: for what takes long, a driver does not spin first.
  enum class Manner { kSpin, kSleep };
  bool wait(Lock& lock, const Ready& ready, Deadline deadline,
            Manner manner = Manner::kSpin);

  // ready(), before a wait. The background thread is let in, if it wants the
  // lock: many waits that are over when they begin may follow each other
  // without a round of polling. REQUIRES the lock.
  template <typename IsReady>
  bool finds(Lock& lock, const IsReady& ready) {
    if (!ready()) {
      return false;
    }
    if (!backgroundWants_.load(std::memory_order_relaxed)) {
      return true;
    }
    giveWay(lock, [this] {
      return backgroundWants_.load(std::memory_order_relaxed);
    });
    return ready();
  }

  // Polls for a moment, without a look at the clock: what comes at once need
  // not be waited for. Returns whether ready() became true. REQUIRES the lock.
  bool glance(const Ready& ready);

  // One round by a thread that does not wait: whether it moved anything.
  // REQUIRES the lock.
  bool visit();

  // Something that a waiter looks at was changed other than by a poller, or a
  // poller has got a new timer: nobody may go on sleeping. REQUIRES the lock.
  void changed();

  // The same of what may be done often, such as the end of an operation, by
  // pollers and others: who sleeps is woken only if its wait is over, and not
  // before the lock is given back. REQUIRES the lock.
  void touched() {
    touched_ |= !sleepers_.empty() || driverAsleep_ != Asleep::kNot;
  }

  // A poller has something to do: whoever was to poll it does. REQUIRES the
  // lock.
  void nudge() {
    if (driverAsleep_ != Asleep::kNot || backgroundAsleep_) {
      ringAsleep();
    }
  }

  // Waits never sleep.
  void setBusyPoll(bool on) { busyPoll_.store(on, std::memory_order_relaxed); }
  // How many ranks share this host's cores, and how many of them are before
  // this one: with more ranks than cores a waiter gives its core away at once
  // instead of spinning. Of all contexts, the one with most ranks counts.
  // REQUIRES the lock.
  void setLocalRanks(int n, int before);
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }

  CoreSpread& spread() { return spread_; }

  Counters counters() const;  // REQUIRES the lock

 private:
  friend class Poller;
  // A thread that waits while another one drives. `woken` is a futex: not a
  // condition variable, so that the sleeper asks for the lock by lock().
  struct Sleeper {
    const Ready* ready;
    std::atomic<uint32_t> woken{0};
  };
  class Spinner;
  enum class Asleep : uint8_t { kNot, kInEpoll, kOnWords };

  // The one poller that does not rest; null: there are several, or none.
  Poller* onlyAwake() const {
    Poller* only = nullptr;
    for (Poller* poller : pollers_) {
      if (!poller->resting() && std::exchange(only, poller) != nullptr) {
        return nullptr;
      }
    }
    return only;
  }
  void lockInTurn(Lock& lock);
  void wake(Sleeper& sleeper);
  void wakeReadySleepers() {
    if (!sleepers_.empty()) {
      wakeReady();
    }
  }
  void wakeReady();
  void wakeTouched();
  void ringDriver();
  void ringAsleep();
  void leaveRole();
  class Role;
  void drive(Lock& lock, const Ready& ready, Deadline deadline, Manner manner);
  void sleep(Lock& lock, const Ready& ready, Deadline deadline);
  bool lastLook(const Ready& ready);
  void block(Lock& lock, const Ready& ready, Deadline deadline, bool* brief);
  bool wordsSuffice() const;
  bool armWords();
  bool armAll();
  std::chrono::milliseconds nextTimer() const;
  void letOthersIn(Lock& lock);
  // As long as somebody wants it, or for a while.
  template <typename IsWanted>
  [[gnu::noinline]] static void giveWay(Lock& lock, const IsWanted& isWanted) {
    lock.unlock();
    for (int i = 0; i < 1000 && isWanted(); i++) {
      sched_yield();
    }
    lock.lock();
  }
  void lockForBackground(Lock& lock);
  void backgroundLoop();
  bool doze();
  void dozeOnce();
  void tend();
  void tendSafely();

  Mutex mutex_{*this};
  std::atomic<int> wanted_{0};  // threads that want mutex_
  std::atomic<bool> backgroundWants_{false};
  std::vector<Poller*> pollers_;
  uint32_t rounds_ = 0;
  bool lookDue_ = false;  // at the driver's deadline
  int lookEvery_;         // rounds of polling between two looks at the clock
  std::vector<Sleeper*> sleepers_;
  // Sequentially consistent, as are backgroundDeep_ and drives_: the leaving
  // driver writes driving_ and reads backgroundDeep_, the background thread
  // writes the latter and reads the former; one of them must see the other.
  std::atomic<bool> driving_{false};
  std::atomic<uint64_t> drives_{0};  // changes whenever a thread drives
  std::atomic<bool> backgroundDeep_{false};
  Asleep driverAsleep_ = Asleep::kNot;
  const Ready* driverReady_ = nullptr;  // while it is asleep
  bool touched_ = false;
  bool backgroundAsleep_ = false;
  // Of the background thread.
  int evasions_ = 0;
  Dozing dozing_;
  RateLimit complaints_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> busyPoll_{false};
  std::atomic<bool> crowded_{false};
  CoreSpread spread_;
  std::chrono::microseconds spinBudget_;
  Yielder yielder_;  // the driver's
  Counters counters_;
  Origin origin_;
  UniqueFd epoll_;
  UniqueFd driverBell_;                  // wakes a driver from epoll
  FutexWords words_;                     // the driver's
  std::atomic<uint32_t> driverWord_{0};  // wakes it from them
  UniqueFd backgroundBell_;              // wakes the background thread
  std::unique_ptr<std::thread> thread_;
};

inline void Poller::lookAtDeadlines() {
  if (domain_ != nullptr) {
    domain_->lookDue_ = true;
  }
}

inline void Poller::nudge() {
  if (domain_ != nullptr) {
    domain_->nudge();
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
