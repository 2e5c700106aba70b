// Which operations have a lane (gloo/internal/direct.h): agreed by the ranks in
// memory that all have mapped, without a message. Also, which tags a rank's own
// operations have there.
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
//
// Who has entered asks whether its tag is this rank's over the links already,
// and leaves, as if it had never come, or goes on (goOn()). Who takes the links
// plans first, then looks at the tags in lanes (hasGoneOn()): it waits for
// those that ask, a few instructions, and is refused by those that have gone
// on. To enter and to look are sequentially consistent, so one of the two sees
// the other, and of two operations with one tag one is refused, however close
// they begin.
//
// After a failure the counts tell who still works in a lane, and so may write
// to others' memory: see close(). It marks the board, then looks at the counts;
// who enters makes its count odd, then looks at the mark. Again one of the two
// sees the other. The mark tells, too, that what was read of others' memory may
// have changed before it was (internal::Lane::letGo()).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

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
    // Another thread of this rank is in that lane, though the memory says that
    // none is: a rank is broken.
    kOverwritten,
  };

  // A multiple of two cache lines.
  static size_t memoryBytes(int ranks);
  // `memory`: zeros at first; aligned to two cache lines. `failed`: nobody
  // waits any more. Borrows both.
  LaneClaims(char* memory, int rank, int ranks,
             const std::atomic<bool>& failed);

  // The lane that an operation with this tag will probably get, by
  // enterExpected(); -1: it has had none.
  int expected(uint64_t tag) const {
    for (int lane = 0; lane < kLanes; lane++) {
      if (known_[lane].load(std::memory_order_relaxed) == nameOf(tag)) {
        return lane;
      }
    }
    return -1;
  }

  // The usual case of enter(). kLinks: it is not that, and enter() has to tell.
  Outcome enterExpected(int lane, uint64_t tag) {
    return enterKnown(lane, nameOf(tag));
  }
  // An operation asks for a lane, which is *lane, until leave(). Waits only for
  // a few instructions of another thread, no longer than `timeout`. After
  // kTimeout *culprit is the rank of that thread; -1: unknown. *waited: so
  // long.
  Outcome enter(uint64_t tag, std::chrono::milliseconds timeout, int* lane,
                int* culprit = nullptr,
                std::chrono::milliseconds* waited = nullptr);
  // What enter() has sent to the links does not go there after all: it is as if
  // it had never come. kLinks: done; else as enter().
  Outcome takeBack(uint64_t tag, std::chrono::milliseconds timeout,
                   int* culprit);
  // It begins. Who leaves without has not been there.
  void goOn(int lane);
  void leave(int lane);
  // Whether one of this rank's has begun that has this tag and a lane.
  bool hasGoneOn(uint64_t tag) const;

  // The context has failed: nobody enters any lane from here on, enter() is
  // kFailed on all ranks, once they have heard of it.
  void close();
  bool isClosed() const;
  // This rank, which is in that lane, has written its last to others' memory.
  void stop(int lane);
  // After close(): whether that rank may be in this rank's operation in the
  // lane and has not said stop() there.
  bool works(int lane, int rank) const;

 private:
  struct Board;
  // Away from others' by a pair of cache lines, as LaneLine is.
  struct alignas(128) Count {
    std::atomic<uint64_t> value;
    std::atomic<uint64_t> stopped;  // the value at which its rank said stop()
  };

  // A free lane has none, 0.
  static uint64_t nameOf(uint64_t tag) { return tag + 1; }

  class Patience;
  Outcome tryToEnter(uint64_t name, Patience& patience, int* lane);
  // Returns for how long.
  std::chrono::milliseconds awaitFailure(
      std::chrono::milliseconds timeout) const;
  Outcome enterKnown(int lane, uint64_t name);
  // Nothing: a thread of this rank has to give way first.
  std::optional<Outcome> enterLocked(uint64_t name, int* lane);
  std::optional<Outcome> enterClaimed(int lane, uint64_t name);
  Outcome entered(int lane, uint64_t name);
  // After the count was seen to be odd.
  bool runs(int lane, uint64_t name) const {
    return running_[lane].load(std::memory_order_relaxed) / 2 == name;
  }
  // False: *why.
  bool lock(Patience& patience, Outcome* why);
  bool mayGoOn(Patience& patience, int awaited, Outcome* why) const;
  void unlock();
  void addToSum(uint64_t number);
  int claimIdle(uint64_t name);
  bool isIdle(int lane) const;
  Count& countOf(int lane, int rank) const;
  std::atomic<uint64_t>& count(int lane, int rank) const {
    return countOf(lane, rank).value;
  }
  uint64_t* sums() const;

  Board& board_;
  const int rank_;
  const int ranks_;
  const std::atomic<bool>& failed_;
  // The name that each lane had when this rank was in it last.
  std::atomic<uint64_t> known_[kLanes] = {};
  // Of this rank's operation that is in the lane: twice its name, and 1 when it
  // has gone on. 0: none is known to be there. An odd count alone may be that
  // of a thread which will give way; and others can write the counts, but not
  // this.
  std::atomic<uint64_t> running_[kLanes] = {};
};

}  // namespace transport::base
GLOO_NAMESPACE_END
