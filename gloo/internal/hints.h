// Hints to the processor about memory that several cores use.
#pragma once

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// Between two looks at memory that another core will write. The processor then
// neither looks ahead, for which it would have to begin anew once the value
// changes (Intel 64 and IA-32 Architectures Optimization Reference Manual,
// "PAUSE"), nor takes much from another thread of the same core. 10 to 50 ns.
inline void pauseBetweenLooks() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// This core will read the cache line.
inline void fetchToRead(const void* data) { __builtin_prefetch(data); }

// This core will write the cache line.
inline void fetchToWrite(const void* data) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(data)));
#else
  __builtin_prefetch(data, 1);
#endif
}

}  // namespace internal
GLOO_NAMESPACE_END
