// Copies into memory that a thread on another core reads next.
//
// A store takes its cache line from whoever has it. Where the two cores have a
// cache in common that costs little, and the reader finds the line there. Where
// they have none (two dies, two sockets, the virtual processors of a machine
// that moves them about), the line comes from the other core's cache before it
// is written, though all of it will be overwritten, and goes back the same way.
// A non-temporal store asks for no line; what it wrote is read from memory.
// Which of the two takes less time depends on where both threads run just now,
// so it is measured now and then.
#pragma once

#include <cstddef>

#include "gloo/config.h"
#include "gloo/internal/copy.h"
#include "gloo/internal/trial.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// One thread at a time.
class GLOO_API HandoverCopy {
 public:
  // Shorter ones cost what the call does.
  static constexpr size_t kLeastBytes = 16 << 10;
  // Of these the second-level cache of the writer may not keep all until they
  // are read: they are stored past it, unless that takes clearly more time.
  // Measured with 1 MiB of it, the time past the caches to that through them,
  // broadcast among 4 and 8 ranks on 2 cores: 1 MiB .48 and .52, 4 MiB .4 and
  // .5; on another machine, with 2 MiB and a large cache behind it, where the
  // store alone takes 1.7 times as long: 1.40 and 1.21, 1.11 and 1.11.
  static constexpr size_t kLongBytes = 1 << 20;

  // The ranges do not overlap; `from` may be null if there are no bytes. What
  // is stored to an atomic afterwards, releasing, is seen after it.
  void operator()(char* to, const char* from, size_t bytes) {
    if (bytes >= kLeastBytes && kHasStreams) {
      copyMeasured(to, from, bytes, bytes >= kLongBytes ? long_ : short_);
    } else {
      copyMemory(to, from, bytes);
    }
  }

  // Whether what is not measured, nor long, is stored past the caches.
  bool streams() const { return short_.trial.goesSecond(); }

#if defined(__x86_64__)
  static constexpr bool kHasStreams = true;
#else
  static constexpr bool kHasStreams = false;
#endif
  // What a store costs depends on how its line was written last: timed once all
  // places that are used in turn (at most as many) have been written that way.
  using WayTrial = Trial<20, 16, 4096>;

 private:
  struct Choice {
    double most;     // to stream: of the time of plain stores
    WayTrial trial;  // plain, streamed: ns per byte
  };
  void copyMeasured(char* to, const char* from, size_t bytes, Choice& choice);

  // What was stored past the caches is read from memory. So the writer's time,
  // which is not all, has to be clearly less, or may be clearly more where it
  // would come from there anyway.
  Choice short_{0.8, WayTrial(false)};
  Choice long_{1.25, WayTrial(true)};
};

// With non-temporal stores where the processor has them; ordered before later
// stores. Any alignment.
GLOO_API void streamingCopy(char* to, const char* from, size_t bytes);

}  // namespace internal
GLOO_NAMESPACE_END
