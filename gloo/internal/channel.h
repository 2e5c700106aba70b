// What the collectives need of a transport's context: operations in storage
// that the caller owns, so that steady state allocates nothing. Implemented by
// transport/base for every transport; found with Channel::of().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "gloo/internal/cause.h"
#include "gloo/internal/check.h"
#include "gloo/internal/repeats.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
class Context;
}

namespace internal {

class Direct;

// Bytes of somebody's.
struct MemoryRange {
  const char* data = nullptr;
  size_t bytes = 0;

  bool holds(const MemoryRange& other) const {
    return data <= other.data && other.data + other.bytes <= data + bytes;
  }
};

// One send or receive. The caller owns it and keeps it in place (it is linked
// into the transport's lists) until it is not pending any more. Reusable.
struct Operation {
  enum class State : uint8_t {
    kIdle,       // never started, or taken back by its owner
    kPending,    // the transport may touch the memory
    kDone,       // success
    kCancelled,  // by cancel(); nobody touches the memory any more
    kFailed,     // the context has failed; its cause says why
  };

  bool pending() const {
    return state.load(std::memory_order_acquire) == State::kPending;
  }
  bool done() const {
    return state.load(std::memory_order_acquire) == State::kDone;
  }

  std::atomic<State> state{State::kIdle};

  // ---- Set by postSend/postRecv; read-only for the caller. ----
  bool isSend = false;
  int peer = -1;  // the source, once known
  uint64_t slot = 0;
  char* data = nullptr;
  size_t bytes = 0;  // of the send; capacity of the receive
  // Progress; at the end, size of the message. Atomic for those who report on
  // an operation that is still pending.
  std::atomic<size_t> bytesDone{0};
  uint64_t check = 0;  // mismatch word; 0: none. See gloo/internal/check.h

  // ---- Only transport/base touches the rest. ----
  Operation* next = nullptr;
  Operation* prev = nullptr;
  Operation* nextPending = nullptr;
  Operation* prevPending = nullptr;
  void* owner = nullptr;               // what it waits in: depends on phase
  void* user = nullptr;                // told of the completion; null: nobody
  std::shared_ptr<const void> region;  // registered memory; null: none
  size_t regionOffset = 0;  // where the operation's memory begins in it
  uint64_t serial = 0;      // of the start
  uint64_t number = 0;      // of the message or the request
  uint64_t remoteAddress = 0;
  uint64_t remoteOffset = 0;
  uint64_t bytesQueued = 0;  // given to the link
  uint64_t wanted = 0;       // bytes to read from the peer
  uint32_t parts = 0;        // given to the link and not complete
  uint32_t remoteKey = 0;
  uint32_t index = 0;  // of an advert or a bound buffer
  int device = -1;     // of CUDA, whose memory it uses; -1: the host's
  uint8_t kind = 0;
  uint8_t phase = 0;
  bool exact = false;
  bool more = false;  // another send to the peer is posted next

  // ---- Set by the caller, before it is posted. ----
  // The buffer or the vector that the memory is of: no more is registered for
  // it. Empty: it is all of one.
  MemoryRange within;
};

// Memory that many operations will use: it stays registered with the device
// from the first that needs it until this is destroyed and no operation uses
// it. Destroy it before the context, and when no operation of the caller's uses
// the memory.
class GLOO_API KeptMemory {
 public:
  virtual ~KeptMemory();
};

// Thread-safe. Functions that start an operation throw
// InvalidOperationException for bad arguments, and the context's cause when it
// has failed.
class GLOO_API Channel {
 public:
  virtual ~Channel();

  // The channel of a connected context; InvalidOperationException if the
  // transport has none.
  static Channel& of(transport::Context& context);

  // A collective begins whose messages will be on slots of this one's tag: what
  // other ranks say of it is compared with `check` from now on, whether or not
  // a receive waits. Returns the word for its messages: `check`, with the
  // sequence number of the tag. A contradiction fails the context. Operations
  // with one tag begin one after the other, in the same order on all ranks.
  // `details` of the word, or null: for who contradicts it. `repeats`: of the
  // lane that it is in, by the thread that is there.
  virtual uint64_t begin(uint64_t slot, uint64_t check,
                         const CheckDetailsPtr& details,
                         Repeats* repeats = nullptr) {
    (void)slot, (void)details, (void)repeats;
    return check;
  }

  // What begin() has returned for the operation with that slot's tag, and what
  // was read, not received, from another rank contradict: that one is told what
  // this one's word stands for, and if it says the same of its own, the context
  // fails with both; else soon, with what is known. Does not wait. (Default:
  // nobody is told.)
  virtual void contradict(const Contradiction& what) { (void)what; }

  // Message [data, data + bytes) to rank dst on `slot`. Messages of one
  // (pair, slot) are delivered in order. `more`: another to that rank is posted
  // next, for which this one may wait, to leave with it.
  virtual void postSend(Operation& op, int dst, uint64_t slot, const void* data,
                        size_t bytes, uint64_t check = 0,
                        bool more = false) = 0;

  // The next message from rank src on `slot`, at most `bytes` long.
  virtual void postRecv(Operation& op, int src, uint64_t slot, void* data,
                        size_t bytes, uint64_t check = 0) = 0;

  // Does not own the memory, which stays in place. Null: nothing to register.
  // `bothWays`: messages will come from there and go there; what peers may
  // write and what is sent is then registered once.
  virtual std::unique_ptr<KeptMemory> keep(void* data, size_t bytes,
                                           bool bothWays = false);

  // Whether a call had better copy that vector of its caller's to kept memory,
  // and back: it would have to be registered for the call, which takes longer
  // than to copy so many bytes, all that the call copies.
  virtual bool isBetterCopied(const MemoryRange& vector, size_t bytes) {
    (void)vector, (void)bytes;
    return false;
  }

  // Drives progress until ready() is true. ready is called by this thread,
  // often, under the domain's lock: it must be quick and only read states of
  // operations. Returns false at the deadline. Throws the context's cause as
  // soon as it has failed. Calls ready at least once.
  virtual bool waitUntil(const std::function<bool()>& ready,
                         Deadline deadline) = 0;

  // Drives progress for a moment, without a look at the clock, which may take
  // longer than a message: true if ready() is, soon enough. `ready` as above.
  virtual bool glance(const std::function<bool()>& ready) { return ready(); }

  // Moves what can be moved, without blocking or spinning.
  virtual void poll() = 0;

  // Ends a pending operation: on return it is not pending (done, cancelled or
  // failed) and nobody touches its memory. At most 2 s.
  virtual void cancel(Operation& op) = 0;

  // Fails the context with this cause and tells all peers. First cause wins.
  virtual void fail(CausePtr cause) = 0;

  // Scratch that all ranks have mapped; null: there is none. The same answer on
  // all ranks, and for as long as the channel lives.
  virtual Direct* direct() { return nullptr; }

  // Null while the context is healthy.
  virtual CausePtr failure() const = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "tcp", "ibverbs", "shm"; per peer.
  virtual std::string linkName(int peer) const = 0;
  // Messages of at most this many bytes leave at once (eager).
  virtual size_t eagerBytes() const = 0;
};

}  // namespace internal
GLOO_NAMESPACE_END
