// Frames as records of a ring: a short eager message is a cell, of which it
// takes one cache line or two, with its payload beside it if that is longer;
// any other frame a header with the first chunk of its payload, and more
// chunks.
//
//  kind   first line (56 bytes)              second     chunk in the bytes
//  small  slot u64, [check u64], payload     goes on    -
//  short  slot u64, check u64, chunk u32     -          `chunk` bytes
//  bound  offset u64, index u32, payload     goes on    -
//  frame  chunk u32, unused u32, payload     header     `chunk` bytes
//  more   chunk u32                          -          `chunk` bytes
//  end    -                                  -          -
//
// A small or short record says only what cannot be reckoned: its number follows
// the number of the frame before, `seen` is a difference. A bound one is all of
// a short write to a bound buffer; it has no number and says nothing else. A
// short payload of a frame rides in the first line (`length`), then its chunk
// is empty.
//
// Measured with 2 ranks that share no cache, half a round trip, as a frame and
// as a small or short record: 64 bytes 552 and 361 ns, 1 KiB 751 and 603, 4 KiB
// 981 and 853.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gloo/config.h"
#include "gloo/internal/handover_copy.h"
#include "transport/base/link.h"
#include "transport/base/wire.h"
#include "transport/shm/ring.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

enum class RecordKind : uint8_t {
  kSmall = 1,
  kSmallChecked = 2,  // small, with a check
  kFrame = 3,
  kMore = 4,
  kEnd = 5,  // nothing follows
  kBound = 6,
  kShort = 7,
};

constexpr size_t kCreditUnit = 64;  // a power of two
// Payload of a frame in the flag's own cache line.
constexpr size_t kInlineBytes = 48;
// Of a bound write; of a message that is a small record, less what a check
// takes; and of a short one.
constexpr size_t kBoundBytes = Cell::kBodyBytes - 12;
constexpr size_t kSmallBytes = Cell::kBodyBytes - 8;
constexpr size_t kShortBytes = 4096;
static_assert(kShortBytes <= RingMemory::kMinBytes / 4);

// What both ends remember of the frame before.
struct FrameMemory {
  uint32_t seen = 0;
  uint32_t number = 0;

  void note(const base::FrameHeader& header);
};

// How much of a frame has been put into the ring.
struct FrameProgress {
  bool begun = false;
  size_t sent = 0;  // bytes of payload
};

// Puts frames into a ring. One thread.
class FrameWriter {
 public:
  explicit FrameWriter(const RingMemory& memory) : ring_(memory) {}

  enum class Step { kNoRoom, kMore, kDone };
  // The next record of this frame. *ring is set when the consumer is to be
  // woken.
  Step step(const base::FrameHeader& header, const char* payload,
            FrameProgress& progress, bool* ring);
  // A write of at most kBoundBytes to the peer's bound buffer `index`; false:
  // no room.
  bool bound(uint32_t index, uint64_t offset, const char* payload, size_t bytes,
             bool* ring);
  // An eager message of at most kShortBytes; false: no room, or it says what
  // the other end cannot reckon.
  bool message(const base::ShortMessage& message, const char* payload,
               bool* ring) {
    return fits(message) && put(message, payload, ring);
  }
  // The end; false: no room.
  bool end(bool* ring);
  void letGo() { ring_.letGo(); }
  void fetchNext() const { ring_.fetchNext(); }

  bool broken() const { return ring_.broken(); }
  bool peerSleeps() const { return ring_.peerSleeps(); }
  bool wake() { return ring_.wake(); }
  bool armForRoom(base::FutexWords* words) { return ring_.armForRoom(words); }
  void disarm() { ring_.disarm(); }

 private:
  bool put(const base::ShortMessage& message, const char* payload, bool* ring);
  bool fits(const base::ShortMessage& message) const;
  bool isSmall(const base::FrameHeader& header,
               base::ShortMessage* message) const;

  RingProducer ring_;
  FrameMemory before_;
  internal::HandoverCopy copyOver_;
};

// Takes frames out of a ring whose other end is not trusted. One thread.
class FrameReader {
 public:
  // Frames have at most `maxPayload` bytes.
  FrameReader(const RingMemory& memory, size_t maxPayload)
      : ring_(memory), maxPayload_(maxPayload) {}

  enum class Event {
    kNothing,
    kMoved,    // bytes of a payload have come, more will
    kPayload,  // header() has come; setPlace() before the next call
    kFrame,    // ... and now all of it
    kBound,    // boundWrite() has come; its payload stays until publish()
    kMessage,  // message() has come; payload() stays until publish()
    kEnd,
    kBroken,  // error() says why; nothing more comes
  };
  Event next();

  struct BoundWrite {
    uint32_t index = 0;
    uint64_t offset = 0;
    const char* payload = nullptr;  // in shared memory
    size_t bytes = 0;
  };
  const BoundWrite& boundWrite() const { return bound_; }

  const base::FrameHeader& header() const { return header_; }
  const base::ShortMessage& message() const { return message_; }
  const char* payload() const { return payload_; }  // in shared memory
  // Where the payload goes; null: nowhere.
  void setPlace(char* place) { place_ = place; }
  const char* place() const { return place_; }
  // After kPayload: next() has something, whether or not ready() says so.
  bool atPayload() const { return state_ == State::kFirst; }
  bool inFrame() const { return state_ != State::kBetween; }
  const char* error() const { return error_; }

  bool hasLetGo() const { return ring_.hasLetGo(); }
  bool publish() { return ring_.publish(); }
  bool wake() { return ring_.wake(); }
  bool arm(base::FutexWords* words) { return ring_.arm(words); }
  void disarm() { ring_.disarm(); }
  bool ready() const { return ring_.peek() != nullptr; }

 private:
  // kFirst: the place of the payload is known, its first bytes are in `first_`.
  enum class State : uint8_t { kBetween, kFirst, kRest };

  Event begin(const Cell& cell);
  Event takeSmall(const Cell& cell, size_t length, bool checked);
  Event takeShort(const Cell& cell);
  Event takeMessage(const Cell& cell, uint64_t check, size_t bytes);
  Event beginFrame(const Cell& cell, size_t length);
  Event takeBound(const Cell& cell, size_t length);
  Event firstChunk();
  Event moreChunk();
  Event copyChunk(const char* from, size_t bytes);
  Event fail(const char* error);

  RingConsumer ring_;
  const size_t maxPayload_;
  FrameMemory before_;
  State state_ = State::kBetween;
  base::FrameHeader header_;
  BoundWrite bound_;
  base::ShortMessage message_;
  const char* payload_ = nullptr;
  char* place_ = nullptr;
  size_t done_ = 0;  // bytes of payload
  // Of the cell that has been looked at: a copy, since the other end may go on
  // writing there.
  char first_[kInlineBytes];
  size_t firstLength_ = 0;
  size_t firstChunk_ = 0;
  const char* error_ = "";
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
