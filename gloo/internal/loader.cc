#include "gloo/internal/loader.h"

#include <pthread.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

// Never destroyed: a fork may come during static destruction.
union Undying {
  constexpr Undying() : mutex() {}
  ~Undying() {}
  std::timed_mutex mutex;
};
Undying undying;
thread_local bool heldForFork = false;

bool lock() {
  constexpr std::chrono::seconds kMostWait(1);
  std::timed_mutex& mutex = undying.mutex;
  // The system's clock: thread sanitizers do not see a wait by the steady one.
  return mutex.try_lock() ||
         mutex.try_lock_until(std::chrono::system_clock::now() + kMostWait);
}

void beforeFork() { heldForFork = lock(); }

void afterFork() {
  if (std::exchange(heldForFork, false)) {
    undying.mutex.unlock();
  }
}

void afterForkInChild() {
  if (!heldForFork) {
    // By a thread that is not here.
    std::construct_at(&undying.mutex);
  }
  afterFork();
}

// At load time, before any thread calls the library.
[[maybe_unused]] const int installed =
    pthread_atfork(&beforeFork, &afterFork, &afterForkInChild);

}  // namespace

LoaderLock::LoaderLock() : locked_(lock()) {}

LoaderLock::~LoaderLock() {
  if (locked_) {
    undying.mutex.unlock();
  }
}

}  // namespace internal
GLOO_NAMESPACE_END
