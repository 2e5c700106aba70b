// How threads put themselves and each other to sleep and wake.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// A lock that takes two atomic operations while nobody waits for it: it is
// taken in every call. Meets the Lockable requirements. (U. Drepper, "Futexes
// Are Tricky", 2011, mutex 2.)
class FutexLock {
 public:
  void lock() {
    if (!try_lock()) {
      lockSlowly();
    }
  }
  bool try_lock() {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(
        expected, kTaken, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kWanted) {
      wakeOne();
    }
  }

 private:
  enum State : uint32_t { kFree, kTaken, kWanted };

  void lockSlowly();
  void wakeOne();

  std::atomic<uint32_t> state_{kFree};
};

// Blocks while `word` is 0, at most until the deadline (futex(2)).
void futexWait(std::atomic<uint32_t>& word, Deadline deadline);
// Makes it 1 and wakes who waits for it.
void futexWake(std::atomic<uint32_t>& word);

// Words of memory on which one thread sleeps until one of them is woken
// (futex_waitv(2), from Linux 5.16 on). Who wakes changes the word before, so
// nothing is lost between a last look and falling asleep: the kernel compares
// each word with its value first, and orders that with the change.
class FutexWords {
 public:
  // Each costs a quarter of a microsecond per sleep, so that with more of them
  // a descriptor takes less time. Measured: a round trip of two processes that
  // share a core and sleep each time takes 5.7 us with 2 words, 8.7 with 8, and
  // 11.3 with the descriptors of epoll(7).
  static constexpr size_t kMost = 12;

  // Whether the kernel has it and permits it; found out once.
  static bool supported();

  void clear() { count_ = 0; }
  // At most kMost. The word may go while one sleeps: that ends the sleep, or
  // does not. `shared`: other processes wake it.
  void add(const std::atomic<uint32_t>& word, uint32_t value, bool shared);
  // Until one of them is woken or has another value than it had. False: at the
  // deadline, or never again: see supported().
  bool wait(Deadline deadline) const;

 private:
  // As the kernel has it.
  struct Word {
    uint64_t value;
    uint64_t address;
    uint32_t flags;
    uint32_t reserved;
  };
  std::array<Word, kMost> words_{};
  size_t count_ = 0;
};

// A memory barrier on every core that runs a thread of a process that has asked
// whether it is supported (membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED,
// Linux 4.16). Who is about to sleep makes it between its bell and its last
// look: so who publishes, and looks at the bell afterwards, needs none of its
// own.
class SleepersBarrier {
 public:
  // Whether the kernel has it and permits it, for this process from now on. The
  // first call takes some 10 ms in a process that has several threads already.
  static bool supported();
  // A system call that interrupts those cores, of all such processes of this
  // machine. False: it was refused.
  [[nodiscard]] static bool make();
};

// Wakes who sleeps on a word that processes share.
void wakeShared(std::atomic<uint32_t>& word);

// A descriptor that another thread makes readable (eventfd(2)). Throws
// IoException.
UniqueFd makeBell();
void ring(const UniqueFd& bell);
void silence(const UniqueFd& bell);

// Blocks until one of two descriptors (-1: none) is readable.
void waitReadable(int a, int b, Deadline deadline);
// Blocks for so long at most; whether the descriptor is readable. Looks at no
// clock.
bool waitReadable(int fd, std::chrono::milliseconds limit);

}  // namespace transport::base
GLOO_NAMESPACE_END
