// Around calls into the dynamic loader. A forked child has the loader's locks
// as they were, and waits for one that a thread of its parent held for ever:
// the C library does not see to that. So a fork waits for these calls.
#pragma once

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// No thread of the process forks while one of these lives, and only one lives
// at a time. Nothing may fork under it.
//
// Both hold but for what waits longer than a second, and then goes on: a
// handler of fork's that calls the library, and a constructor that runs under
// the loader's lock while others wait for that under this one, would be waited
// for in a circle.
class LoaderLock {
 public:
  LoaderLock();
  ~LoaderLock();
  LoaderLock(const LoaderLock&) = delete;
  LoaderLock& operator=(const LoaderLock&) = delete;

 private:
  const bool locked_;
};

}  // namespace internal
GLOO_NAMESPACE_END
