// Timeouts that callers give.
#pragma once

#include <chrono>

#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// Throws InvalidOperationException for a negative one: a mistake of who has
// reckoned it, that would be taken for none at all.
inline void requireTimeout(std::chrono::milliseconds timeout) {
  GLOO_ENFORCE(timeout.count() >= 0, "timeout of ", timeout.count(),
               " ms: must be 0 (none) or more");
}

}  // namespace internal
GLOO_NAMESPACE_END
