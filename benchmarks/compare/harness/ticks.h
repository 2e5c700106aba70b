// Time by the processor's counter where there is one, as perftest takes it: in
// a guest the clock may be a device's, and a look at it take as long as a
// message.
#pragma once

#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include <chrono>
#include <cstdint>

namespace measure {

// At a constant rate, the same on all cores.
inline uint64_t ticks() {
#ifdef __x86_64__
  return __rdtsc();
#else
  return static_cast<uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// How long a tick is, by what the clock says of the time since it was made: of
// a millisecond at least.
class TickRate {
 public:
  double microseconds() const {
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - begin_;
    return spent.count() / static_cast<double>(ticks() - first_);
  }

 private:
  std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();
  uint64_t first_ = ticks();
};

}  // namespace measure
