// The tags of this rank's calls that are in a lane, or about to enter one: so
// that of two calls with one tag, in a lane and over the links, one is refused,
// however close to each other they begin.
//
// Who wants a lane asks: it enters its tag, then looks at what is planned for
// the links, and is refused or goes on. Who takes the links plans first, then
// looks at the tags: it waits for those that ask, a few instructions, and is
// refused by those that have gone on. Entering and looking are sequentially
// consistent, so one of the two sees the other; and only who plans waits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Thread-safe, without a lock.
class RunningTags {
 public:
  // A call's tag, until the end of this object.
  class Entry {
   public:
    Entry(RunningTags& tags, uint64_t tag)
        : name_(nameOf(tag)), place_(tags.take(name_)) {}
    ~Entry() { place_.store(0, std::memory_order_release); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    // Nothing is planned for the links with this tag.
    void goOn() { place_.store(name_ + 1, std::memory_order_release); }

   private:
    const uint64_t name_;
    std::atomic<uint64_t>& place_;
  };

  // Whether a call with this tag has gone on.
  bool has(uint64_t tag) const {
    const uint64_t name = nameOf(tag);
    bool found = false;
    for (const std::atomic<uint64_t>& place : places_) {
      uint64_t value = place.load(std::memory_order_seq_cst);
      while (value == name) {
        std::this_thread::yield();
        value = place.load(std::memory_order_acquire);
      }
      found = found || value == name + 1;
    }
    return found;
  }

 private:
  // More than there are lanes: others have a place for a moment only.
  static constexpr size_t kPlaces = 16;
  // Even, and not 0; plus 1: it has gone on. (Tags have fewer bits.)
  static constexpr uint64_t nameOf(uint64_t tag) { return 2 * tag + 2; }

  std::atomic<uint64_t>& take(uint64_t name) {
    for (;;) {
      for (std::atomic<uint64_t>& place : places_) {
        uint64_t free = 0;
        if (place.load(std::memory_order_relaxed) == 0 &&
            place.compare_exchange_strong(free, name,
                                          std::memory_order_seq_cst)) {
          return place;
        }
      }
      std::this_thread::yield();
    }
  }

  std::array<std::atomic<uint64_t>, kPlaces> places_{};
};

}  // namespace algorithms
GLOO_NAMESPACE_END
