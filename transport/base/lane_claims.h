// Which operations have a lane (gloo/internal/direct.h): agreed by the ranks in
// memory that all have mapped, without a message.
//
// All ranks must decide alike on each operation, whenever they come to it and
// in whatever order relative to others:
// - The first that comes claims a lane for its tag; the others find the claim.
// - A lane is claimed for another tag when it is idle: all ranks have begun and
//   ended the same number of operations in it. Each rank keeps a count for each
//   lane, even outside and odd inside of an operation; idle is: all counts are
//   equal and even.
// - Who finds no idle lane takes the links, and from then on all ranks do for
//   whatever has no lane, until all have done so for the same operations. Each
//   rank keeps a sum of their tags, hashed, to tell: that two sums are equal by
//   chance is as likely as two random numbers of 64 bits.
//
// All that is done under a lock in that memory, except the usual case: the tag
// has the lane that it had before. Its rank makes its count odd, then looks at
// the claim; who takes a lane away marks the claim, then looks at the counts.
// These four are sequentially consistent, so one of the two sees the other and
// gives way. tests/model/claims.pml is a model of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// One rank's view. Thread-safe.
class LaneClaims {
 public:
  static constexpr int kLanes = 4;
  enum class Outcome : uint8_t {
    kLane,
    kLinks,
    kInUse,  // by another operation of this rank with this tag
    kFailed,
    kTimeout,
  };

  // A multiple of two cache lines.
  static size_t memoryBytes(int ranks);
  // `memory`: zeros at first; aligned to two cache lines. `failed`: nobody
  // waits any more. Borrows both.
  LaneClaims(char* memory, int rank, int ranks,
             const std::atomic<bool>& failed);

  // An operation begins. Its lane is *lane, until leave(). Waits only for the
  // lock, no longer than `timeout`.
  Outcome enter(uint64_t tag, std::chrono::milliseconds timeout, int* lane);
  void leave(int lane);
  // Whether this rank has an operation with this tag in a lane.
  bool isRunning(uint64_t tag) const;

  // After kTimeout: the rank that has the lock; -1: none.
  int owner() const;

 private:
  struct Board;
  // Away from others' by a pair of cache lines, as LaneLine is.
  struct alignas(128) Count {
    std::atomic<uint64_t> value;
  };

  Outcome enterKnown(int lane, uint64_t name);
  Outcome enterLocked(uint64_t name, int* lane);
  Outcome enterClaimed(int lane, uint64_t name);
  Outcome entered(int lane, uint64_t name);
  // After the count was seen to be odd.
  bool runs(int lane, uint64_t name) const {
    return running_[lane].load(std::memory_order_relaxed) == name;
  }
  bool lock(std::chrono::milliseconds timeout, Outcome* why);
  void unlock();
  void refuse(uint64_t name);
  int claimIdle(uint64_t name);
  bool isIdle(int lane) const;
  std::atomic<uint64_t>& count(int lane, int rank) const;
  uint64_t* sums() const;

  Board& board_;
  const int rank_;
  const int ranks_;
  const std::atomic<bool>& failed_;
  // The name that each lane had when this rank was in it last.
  std::atomic<uint64_t> known_[kLanes] = {};
  // The name of this rank's operation that is in the lane; 0: none is known to
  // be. An odd count alone may be that of a thread which will give way.
  std::atomic<uint64_t> running_[kLanes] = {};
};

}  // namespace transport::base
GLOO_NAMESPACE_END
