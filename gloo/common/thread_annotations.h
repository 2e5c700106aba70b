// Locks that the compiler checks: with clang's -Wthread-safety it is an error
// to touch a member without the mutex that guards it. Other compilers see an
// ordinary std::mutex.
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#include <condition_variable>
#include <mutex>

#include "gloo/config.h"

#if defined(__clang__)
#define GLOO_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define GLOO_THREAD_ANNOTATION(x)
#endif

// Of a member: read and written only while `mutex` is held.
#define GLOO_GUARDED_BY(mutex) GLOO_THREAD_ANNOTATION(guarded_by(mutex))
// Of a pointer: what it points to is.
#define GLOO_PT_GUARDED_BY(mutex) GLOO_THREAD_ANNOTATION(pt_guarded_by(mutex))
// Of a function: the caller holds the mutex, or must not hold it.
#define GLOO_REQUIRES(...) \
  GLOO_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define GLOO_EXCLUDES(...) GLOO_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// Of a function: it takes or releases the mutex.
#define GLOO_ACQUIRE(...) \
  GLOO_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define GLOO_RELEASE(...) \
  GLOO_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define GLOO_TRY_ACQUIRE(...) \
  GLOO_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
// Of a function whose locking the analysis cannot follow; say why beside it.
#define GLOO_NO_THREAD_SAFETY_ANALYSIS \
  GLOO_THREAD_ANNOTATION(no_thread_safety_analysis)
#define GLOO_CAPABILITY(name) GLOO_THREAD_ANNOTATION(capability(name))
#define GLOO_SCOPED_CAPABILITY GLOO_THREAD_ANNOTATION(scoped_lockable)

GLOO_NAMESPACE_BEGIN

// A std::mutex that the analysis knows. Thread-safe.
class GLOO_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() GLOO_ACQUIRE() { mutex_.lock(); }
  void unlock() GLOO_RELEASE() { mutex_.unlock(); }
  bool try_lock() GLOO_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a Mutex for a scope; may let go of it and take it again. Used by one
// thread.
class GLOO_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) GLOO_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() GLOO_RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() GLOO_RELEASE() { lock_.unlock(); }
  void lock() GLOO_ACQUIRE() { lock_.lock(); }

  // For std::condition_variable::wait and its kin, which release and retake
  // the mutex. Test the predicate in a loop of the caller's: the analysis does
  // not look into lambdas.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

GLOO_NAMESPACE_END
