// One direction of a shared-memory link: a ring of cells, each with a sequence
// number, and a ring of bytes for payloads that do not fit into a cell. One
// producer and one consumer, in different processes; no locks.
//
// Memory order. A record is published by the store of its cell's sequence
// number, after its contents and its bytes were written; the consumer loads the
// number with acquire before it reads them. The numbers of a cell grow by the
// number of cells, so one left from the last round is never taken for a new
// one, and a cell never holds anything else at that place. Room is given back
// by the stores of the two consumed counts, after the reads; the producer loads
// them with acquire before it writes there again. So every byte is written and
// read by one side at a time, and the two edges are all that orders them.
//
// Sleeping. To sleep, a side stores how it sleeps in its flag (the consumer
// `asleep`, the producer, when it lacks room, `waits`) and looks once more at
// what the other side publishes; the other side publishes and then looks at the
// flag, takes it back and wakes as it says. All four accesses are sequentially
// consistent, so that in their single order one of the two looks comes after
// the other side's store: either the sleeper sees the news, or it is woken.
//
// Who sleeps in epoll is rung by a byte, which waits for it. Who sleeps on the
// flag itself (futex(2)) has the kernel compare it first: the kernel looks at
// it under the lock of its queue, which whoever wakes takes after changing it,
// so either the sleeper finds the flag taken back, or it stands in the queue.
// One that has got up without being woken stores 0, and may be woken by who
// took the flag before, once, while it sleeps the next time: it looks, and
// sleeps again. How it sleeps is told by the value that is taken back, never by
// an earlier look: between the two it may have got up and lain down otherwise.
// tests/model/ring.pml is a model of all that.
//
// Letting go. What a record announces lies in its sender's memory and is read
// there later. A sender that fails sets `letGo` before its caller hears of it,
// whatever room the ring has, and only then may that memory change; who has
// read it looks at the word afterwards, and what was read counts only if it is
// not set. A fence on either side keeps each pair in that order. After an
// orderly end nothing is left to be read.
//
// What the other side writes is not trusted: lengths are checked by whoever
// reads them (record.h), positions are never read from shared memory, and a
// consumed count that cannot be is an error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gloo/config.h"
#include "gloo/internal/hints.h"
#include "transport/base/bell.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

constexpr size_t kLine = 64;

// What the flag of a sleeper says. Of a peer that writes others, each is the
// second.
enum Sleep : uint32_t { kAwake = 0, kInEpoll = 1, kOnFlag = 2 };

// The first line holds the sequence number and all of a small message of a few
// bytes, or, of any other record, the length and a short payload; the second
// one the rest of a small message, or a header.
struct alignas(2 * kLine) Cell {
  static constexpr size_t kBodyBytes = 120;
  static constexpr size_t kHeadAt = 56;  // in the body: the second line

  std::atomic<uint32_t> sequence;
  uint8_t kind;
  uint8_t length;   // of the payload in `body`
  uint8_t seen;     // small: more than in the frame before
  uint8_t credits;  // small: in units of kCreditUnit
  char body[kBodyBytes];
};
static_assert(sizeof(Cell) == 2 * kLine);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct RingControl {
  // Written by the consumer.
  alignas(kLine) std::atomic<uint64_t> consumedCells;
  std::atomic<uint64_t> consumedBytes;
  // Set by the consumer and by the producer, taken back by either.
  alignas(kLine) std::atomic<uint32_t> asleep;
  alignas(2 * kLine) std::atomic<uint32_t> waits;
  // Set by the producer, for good.
  alignas(kLine) std::atomic<uint32_t> letGo;
};

// Where a ring lies. Value; the memory belongs to a Segment.
struct RingMemory {
  RingControl* control = nullptr;
  Cell* cells = nullptr;
  char* bytes = nullptr;
  uint32_t cellCount = 0;  // powers of two
  uint32_t byteCount = 0;

  static constexpr uint32_t kMinCells = 16;
  static constexpr uint32_t kMinBytes = 16 << 10;

  // Of the memory that one ring takes.
  static size_t size(uint32_t cellCount, uint32_t byteCount) {
    return sizeof(RingControl) + cellCount * sizeof(Cell) + byteCount;
  }
};

// One thread.
class RingProducer {
 public:
  explicit RingProducer(const RingMemory& memory) : ring_(memory) {}

  // The largest chunk: several must fit, so that both sides work at once.
  size_t maxChunk() const { return ring_.byteCount / 4; }

  // The next cell, and where `chunk` bytes (at most maxChunk()) of payload go;
  // null: there is no room now. Nothing is published before commit().
  Cell* begin(size_t chunk, char** place);
  // The same without a chunk.
  Cell* begin() {
    nextBytes_ = producedBytes_;
    return fits(0) || (refresh() && fits(0))
               ? &ring_.cells[produced_ & (ring_.cellCount - 1)]
               : nullptr;
  }
  // A hint, where it is soon about to be written, that the next cell is fetched
  // from the consumer, who looks at its first line. (The second one first: else
  // the first has gone again before that one is there.)
  void fetchNext() const {
    const Cell& cell = ring_.cells[produced_ & (ring_.cellCount - 1)];
    internal::fetchToWrite(cell.body + Cell::kHeadAt);
    internal::fetchToWrite(&cell);
  }
  // Publishes it. True: the consumer sleeps and must be woken.
  bool commit();
  // Does so. False: it has to be rung, which a ring cannot.
  bool wake();

  // Before sleeping for lack of room: from now on the consumer rings, or, with
  // `words`, wakes who sleeps on the one that is added there. True when there
  // is news already.
  bool armForRoom(base::FutexWords* words = nullptr);
  void disarm();

  // Memory that this side has announced may change once this has returned.
  void letGo() {
    ring_.control->letGo.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  // At this moment; a hint.
  bool peerSleeps() const {
    return ring_.control->asleep.load(std::memory_order_relaxed) != 0;
  }

  // The consumer has claimed what cannot be.
  bool broken() const { return broken_; }

 private:
  bool refresh();
  bool fits(size_t needed) const {
    return produced_ - consumedCells_ < ring_.cellCount &&
           producedBytes_ + needed - consumedBytes_ <= ring_.byteCount;
  }

  RingMemory ring_;
  uint64_t produced_ = 0;  // cells
  uint64_t producedBytes_ = 0;
  uint64_t consumedCells_ = 0;  // as far as we have looked
  uint64_t consumedBytes_ = 0;
  uint64_t nextBytes_ = 0;   // producedBytes_ after commit()
  uint32_t sleep_ = kAwake;  // of the consumer, as taken back last
  bool broken_ = false;
};

// One thread.
class RingConsumer {
 public:
  explicit RingConsumer(const RingMemory& memory) : ring_(memory) {}

  size_t maxChunk() const { return ring_.byteCount / 4; }

  // The next cell, which stays until take(); null: there is none.
  const Cell* peek() const {
    const Cell& cell = ring_.cells[consumed_ & (ring_.cellCount - 1)];
    return cell.sequence.load(std::memory_order_acquire) ==
                   static_cast<uint32_t>(consumed_ + 1)
               ? &cell
               : nullptr;
  }
  // Where the payload of that cell lies; `chunk` is at most maxChunk().
  const char* bytesOf(size_t chunk) const;
  // Done with that cell and its chunk.
  void take(size_t chunk);
  // The same without a chunk.
  void take() { consumed_++; }

  // Gives back the room of all that was taken. True: the producer sleeps for
  // lack of it and must be woken.
  bool publish();
  bool wake();  // as the producer's

  // Whether memory that the producer has announced, and that was read before
  // this call, may have changed by then.
  bool hasLetGo() const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return ring_.control->letGo.load(std::memory_order_relaxed) != 0;
  }

  // Before sleeping: from now on the producer rings, or wakes, as above. True
  // when there is a record already.
  bool arm(base::FutexWords* words = nullptr);
  void disarm();

 private:
  RingMemory ring_;
  uint64_t consumed_ = 0;  // cells
  uint64_t consumedBytes_ = 0;
  uint64_t published_ = 0;
  uint64_t publishedBytes_ = 0;
  uint32_t sleep_ = kAwake;  // of the producer, as taken back last
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
