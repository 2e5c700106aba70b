// Where the threads of a test run.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <cstddef>

#include "gloo/internal/cores.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// The calling thread, and those that it starts: on so many of the cores that it
// may run on, from number `first` of these on (fewer where there are no more).
inline void stayOn(size_t first, size_t cores) {
  const cpu_set_t all = internal::allowedCores();
  cpu_set_t some;
  CPU_ZERO(&some);
  for (size_t i = first; i < first + cores; i++) {
    if (internal::coreAt(all, i) >= 0) {
      CPU_SET(internal::coreAt(all, i), &some);
    }
  }
  ASSERT_EQ(0, sched_setaffinity(0, sizeof(some), &some));
}

}  // namespace test
GLOO_NAMESPACE_END
