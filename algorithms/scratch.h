// Memory for segments that wait to be reduced, kept for the next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Aligned for any element type and for vector loads; uninitialised. Movable.
class Scratch {
 public:
  Scratch() = default;
  // Registered with the channel as long as it lives.
  Scratch(internal::Channel& channel, size_t bytes)
      : memory_(static_cast<char*>(::operator new(bytes, kAlignment))),
        kept_(channel.keep(memory_.get(), bytes)),
        bytes_(bytes) {}

  Scratch(Scratch&&) noexcept = default;
  Scratch& operator=(Scratch&& other) noexcept {
    kept_ = nullptr;  // before its memory goes
    memory_ = std::move(other.memory_);
    kept_ = std::move(other.kept_);
    bytes_ = other.bytes_;
    lastUse = other.lastUse;
    return *this;
  }

  char* data() const { return memory_.get(); }
  size_t bytes() const { return memory_ ? bytes_ : 0; }

  uint64_t lastUse = 0;  // for the pool's bookkeeping

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(char* memory) const noexcept {
      ::operator delete(memory, kAlignment);
    }
  };

  std::unique_ptr<char, Delete> memory_;
  std::unique_ptr<internal::KeptMemory> kept_;
  size_t bytes_ = 0;
};

// At least so long; for bytes of a pool, so that calls of different sizes
// share.
Scratch makeScratch(internal::Channel& channel, size_t bytes);

// One thread. What goes is handed out: to unmap long memory takes long.
class ScratchPool {
 public:
  ScratchPool() { free_.reserve(kMaxFree + 1); }

  // At least `bytes`: the smallest that fits; empty: none does. `stale`: a long
  // one that was of no use for a while, if there is one.
  Scratch take(size_t bytes, Scratch& stale);
  // What there is no room for.
  Scratch give(Scratch scratch);

 private:
  // Two for each of more threads than are likely to run collectives on one
  // context at once.
  static constexpr size_t kMaxFree = 16;

  std::vector<Scratch> free_;
  uint64_t takes_ = 0;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
