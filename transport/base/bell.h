// How threads put themselves and each other to sleep and wake.
#pragma once

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
