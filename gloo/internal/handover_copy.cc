#include "gloo/internal/handover_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "gloo/internal/sanitized.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

#if defined(__x86_64__) && !GLOO_SANITIZED

// Intel 64 and IA-32 Architectures Optimization Reference Manual, "Streaming
// Stores and Write Combining": whole lines at once, and a fence, since these
// stores are not ordered among others.
void streamingCopy(char* to, const char* from, size_t bytes) {
  constexpr size_t kLine = 64;
  const size_t begin = -reinterpret_cast<uintptr_t>(to) % kLine;
  const size_t head = std::min(bytes, begin);
  if (head > 0) {
    std::memcpy(to, from, head);
  }
  size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  if (at < bytes) {
    std::memcpy(to + at, from + at, bytes - at);
  }
  _mm_sfence();
}

#else

void streamingCopy(char* to, const char* from, size_t bytes) {
  if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

#endif

void HandoverCopy::copyMeasured(char* to, const char* from, size_t bytes,
                                Choice& choice) {
  WayTrial& trial = choice.trial;
  trial.run([&] {
    if (trial.goesSecond()) {
      streamingCopy(to, from, bytes);
    } else {
      copyMemory(to, from, bytes);
    }
    return 1 / static_cast<double>(bytes);
  });
  trial.chooseOnceOver(choice.most);
}

}  // namespace internal
GLOO_NAMESPACE_END
