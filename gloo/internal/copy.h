// Copies of vectors, of any alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gloo/config.h"
#include "gloo/internal/sanitized.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// Where the target begins less than a cache line after the source, modulo a
// page, processors take each load for one of what was stored just before
// ("4-KByte Aliasing", Intel 64 and IA-32 Architectures Optimization Reference
// Manual), and to memcpy() of glibc before 2.39, which leaves long copies to
// rep movsb, some show it in full (https://sourceware.org/bugzilla/
// show_bug.cgi?id=30994). That is no rare case: what malloc() gives of 128 KiB
// and more begins 16 bytes after a page, and scratch at a page. Measured on an
// AMD EPYC 7003, with glibc 2.36: 4 KiB 1.9 GB/s, and 44 from the end, 64 KiB 3
// and 51; broadcast of 1 MiB from and to such memory 527 us and 80.
#if defined(__x86_64__) && !GLOO_SANITIZED
inline constexpr size_t kLeastAliased = 2 << 10;  // shorter ones it leaves be
inline bool isAliased(const void* to, const void* from) {
  constexpr uintptr_t kPage = 4096;
  constexpr uintptr_t kLine = 64;
  const uintptr_t apart =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) %
      kPage;
  return apart - 1 < kLine - 1;
}
// At least a cache line.
GLOO_API void copyFromTheEnd(char* to, const char* from, size_t bytes);
#endif

// As memcpy; of no bytes, either may be null.
inline void copyMemory(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__) && !GLOO_SANITIZED
  if (bytes >= kLeastAliased && isAliased(to, from)) [[unlikely]] {
    return copyFromTheEnd(static_cast<char*>(to),
                          static_cast<const char*>(from), bytes);
  }
#endif
  if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

// The same of what is in a cache, or will be wanted there. Where a processor
// has rep movsb (ERMS), glibc leaves to it what is 8 KiB or longer: there no
// faster than its loops, and emulated ones move byte by byte (QEMU's, measured:
// 16 KiB 75 us, and in pieces 8).
inline void copyCached(void* to, const void* from, size_t bytes) {
  constexpr size_t kPiece = 4096;
  size_t done = 0;
  for (; bytes - done > kPiece; done += kPiece) {
    copyMemory(static_cast<char*>(to) + done,
               static_cast<const char*>(from) + done, kPiece);
  }
  if (bytes > done) {
    copyMemory(static_cast<char*>(to) + done,
               static_cast<const char*>(from) + done, bytes - done);
  }
}

}  // namespace internal
GLOO_NAMESPACE_END
