// Operations of a rank in one lane that say word for word what the one before
// said. What all ranks say there is compared line by line; what is said over
// the links of operations with the same tag is compared with it as well
// (Channel::begin()), which takes a lock, and nearly always is for nothing, as
// all ranks are in the lane. So a repeated operation is only counted, and the
// channel takes the count
// - before it compares a word, before it begins an operation of any kind, and
//   before it tells how many have begun;
// - when the thread in the lane has published, and a word has come for an
//   operation that is yet to begin. Who hears such a word marks the lane, if
//   its operations repeat each other already, then takes the count (if not, the
//   thread in the lane marks it when they do); who is in the lane counts,
//   publishes, then looks at the mark. Publishing is a full barrier between
//   them, or who marks makes one for both, as a sleeper does, so one of the two
//   sees the other: tests/model/repeats.pml.
#pragma once

#include <atomic>
#include <cstdint>

#include "gloo/config.h"
#include "gloo/internal/check.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

class Repeats {
 public:
  // ---- The thread that is in the lane.

  // Whether an operation with that word, which has no number yet, is only to be
  // counted. It has the tag of the one before, and follows it.
  bool match(uint64_t word) const { return word == repeated_; }
  // It begins.
  void count() {
    made_.store(made_.load(std::memory_order_relaxed) + 1,
                std::memory_order_release);
  }
  bool marked() const { return marked_.load(std::memory_order_seq_cst); }

  // ---- The channel, under its lock.

  // By the thread that is in the lane: an operation has begun there, with a
  // word as Channel::begin() returns it. The second one in a row is repeated.
  void begin(uint64_t tag, uint64_t word) {
    const uint64_t next = withSequence(last_, sequenceAfter(sequenceOf(last_)));
    repeated_ = tag == tag_ && word == next ? withSequence(word, 0) : 0;
    tag_ = tag;
    last_ = word;
  }
  bool areOf(uint64_t tag) const { return repeated_ != 0 && tag == tag_; }
  uint64_t tag() const { return tag_; }
  uint64_t word() const { return repeated_; }
  // How many were counted that are not taken.
  uint64_t untaken() const {
    return made_.load(std::memory_order_seq_cst) - taken_;
  }
  void take(uint64_t times) { taken_ += times; }
  void mark(bool on) { marked_.store(on, std::memory_order_seq_cst); }

 private:
  std::atomic<uint64_t> made_{0};
  std::atomic<bool> marked_{false};
  uint64_t repeated_ = 0;  // 0: none is
  uint64_t tag_ = 0;
  uint64_t last_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace internal
GLOO_NAMESPACE_END
