// A member that derived classes see as a plain value, and that the library's
// threads read while another one sets it.
#pragma once

#include <atomic>
#include <chrono>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

using AtomicTimeout = std::atomic_ref<std::chrono::milliseconds>;
static_assert(alignof(std::chrono::milliseconds) >=
              AtomicTimeout::required_alignment);

inline void storeTimeout(std::chrono::milliseconds& shared,
                         std::chrono::milliseconds timeout) {
  AtomicTimeout(shared).store(timeout, std::memory_order_relaxed);
}

// (C++20 has no atomic_ref to const.)
inline std::chrono::milliseconds loadTimeout(
    const std::chrono::milliseconds& shared) {
  return AtomicTimeout(const_cast<std::chrono::milliseconds&>(shared))
      .load(std::memory_order_relaxed);
}

}  // namespace internal
GLOO_NAMESPACE_END
