// The state of messages on one slot of one pair. See pair.h for the protocol.
#pragma once

#include <cstdint>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/channel.h"
#include "transport/base/link.h"
#include "transport/base/pool.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Pair;

// A pair's place in its device's list of those that have more to give to their
// links than one round allows.
struct PumpEntry {
  Pair& pair;
  bool listed = false;
  PumpEntry* next = nullptr;
  PumpEntry* prev = nullptr;
};
struct SlotState;
using internal::Operation;

// What an Operation is for: Operation::kind.
enum Kind : uint8_t {
  kMessage,     // send or receive
  kBoundWrite,  // Buffer::send
  kPutRequest,
  kGetRequest,
  kGetReply,  // the target's answer to a get; owned by the pair
};

// Whether waitSend waits for it. A get, too: what is asked for by this rank
// alone is no receive.
inline bool endsSendWait(const Operation& op) {
  return op.isSend || op.kind == kGetRequest;
}

using PendingOperations =
    Fifo<Operation, &Operation::nextPending, &Operation::prevPending>;

// What operations of the public interface belong to: told of the end of each,
// under the domain's lock, and then owns it again. Those that are pending are
// listed here, so that taking them back looks at no others.
class OperationOwner {
 public:
  virtual ~OperationOwner() = default;
  virtual void onOperation(Operation& op) = 0;

  OperationOwner* next = nullptr;  // of its context's that are busy
  OperationOwner* prev = nullptr;

 private:
  friend class Context;

  bool busy() const { return !pendingSends_.empty() || !pendingRecvs_.empty(); }
  Operation* anyPending() const {
    return busy()
               ? (pendingSends_.empty() ? pendingRecvs_ : pendingSends_).front()
               : nullptr;
  }
  // Those that waitSend waits for, or waitRecv.
  PendingOperations& pending(bool sends) {
    return sends ? pendingSends_ : pendingRecvs_;
  }

  PendingOperations pendingSends_;
  PendingOperations pendingRecvs_;
};

// ---- The receiver's side ----

// A receive in the queue of one slot. A receive from any of several ranks has
// one entry in each of their queues, linked in a ring by `sibling`.
struct RecvEntry {
  Operation* op = nullptr;
  Pair* pair = nullptr;
  SlotState* state = nullptr;  // null: its message was introduced, and it has
                               // left the queue
  RecvEntry* next = nullptr;
  RecvEntry* prev = nullptr;
  RecvEntry* sibling = nullptr;  // null: from one named rank
  bool advertised = false;       // the sender may write: `index` is valid
  bool cancelling = false;       // a kCancel is on its way
  bool cancelWanted = false;     // when the answer to another one is here
  bool told = false;             // the sender knows the check word
  uint32_t index = 0;

  bool wildcard() const { return sibling != nullptr; }
  bool introduced() const { return state == nullptr; }
};

// A message that was introduced by the sender and met no receive yet.
struct Arrival {
  SlotState* state = nullptr;
  Arrival* next = nullptr;
  Arrival* prev = nullptr;
  uint32_t number = 0;
  bool announced = false;  // else: eager, its bytes are in `stash`
  bool complete = false;   // eager: all bytes are here
  uint64_t bytes = 0;
  uint64_t check = 0;
  char* stash = nullptr;
  Operation* op = nullptr;  // a receive that waits for the rest of the bytes
  RemoteMemory remote;      // pull: where the sender has it
};

// ---- The sender's side ----

// A message that we introduced and of which we do not know that the peer saw
// it.
struct Intro {
  SlotState* state = nullptr;
  Intro* next = nullptr;  // of this pair
  Intro* prev = nullptr;
  Intro* nextOnSlot = nullptr;
  uint32_t number = 0;
  Operation* op = nullptr;  // announced and not yet served; else null
};

// Memory for the `target`th message on the slot.
struct StoredAdvert {
  StoredAdvert* next = nullptr;
  StoredAdvert* prev = nullptr;
  uint64_t target = 0;
  uint64_t bytes = 0;
  uint64_t check = 0;
  uint32_t index = 0;
  RemoteMemory remote;
};

struct SlotState {
  uint64_t slot = 0;
  SlotState* nextInBucket = nullptr;

  Fifo<RecvEntry> recvs;
  Fifo<Arrival> arrivals;
  uint32_t wildcards = 0;   // in recvs
  uint32_t advertised = 0;  // in recvs
  uint32_t cancelling = 0;  // kCancels of receives without an answer yet

  Fifo<Operation> announced;  // sends that wait for memory
  Fifo<StoredAdvert> adverts;
  Intro* unseenFront = nullptr;
  Intro* unseenBack = nullptr;
  uint64_t unseen = 0;
  uint64_t sent = 0;  // messages introduced since the state was made
  bool kept = false;  // by its table, also while it is idle

  // For the next message.
  bool hasAdvert() const {
    return !adverts.empty() && adverts.front()->target == sent;
  }
  bool idle() const {
    return recvs.empty() && arrivals.empty() && announced.empty() &&
           adverts.empty() && unseen == 0 && cancelling == 0;
  }
};

// A buffer that the peer has bound to a slot, or will.
struct RemoteBound {
  bool known = false;
  uint64_t bytes = 0;
  uint32_t index = 0;
  RemoteMemory remote;
  Fifo<Operation> waiting;  // until it is known
  // The peer counts what arrives: all parts of a write leave before the first
  // one of the next. One is active at a time.
  bool writing = false;
  Fifo<Operation> behind;
  size_t users = 0;  // send buffers of ours that refer to this
};

// The slots of a pair that have something going on. Slots come and go with
// every collective; an idle one is forgotten, but for the last two: one message
// after the other often has the same slot, and its answer another one.
class SlotTable {
 public:
  explicit SlotTable(Pool<SlotState>& pool) : pool_(pool), buckets_(16) {}

  // Made when absent.
  SlotState& at(uint64_t slot) {
    SlotState* const state = find(slot);
    return state != nullptr ? *state : make(slot);
  }
  // Null when absent.
  SlotState* find(uint64_t slot) const {
    if (last_ != nullptr && last_->slot == slot) {
      return last_;
    }
    if (secondLast_ != nullptr && secondLast_->slot == slot) {
      return secondLast_;
    }
    return search(slot);
  }
  void forgetIfIdle(SlotState& state);

  template <typename Function>
  void forEach(Function function) {
    for (SlotState* head : buckets_) {
      for (SlotState* s = head; s != nullptr;) {
        SlotState* following = s->nextInBucket;
        function(*s);
        s = following;
      }
    }
  }

 private:
  size_t bucketOf(uint64_t slot) const {
    return (slot * 0x9e3779b97f4a7c15ull >> 32) & (buckets_.size() - 1);
  }
  SlotState& make(uint64_t slot);
  SlotState* search(uint64_t slot) const;
  void grow();
  void forget(SlotState& state);

  Pool<SlotState>& pool_;
  std::vector<SlotState*> buckets_;
  size_t count_ = 0;
  // That became idle last, the later one first; may be in use again.
  SlotState* last_ = nullptr;
  SlotState* secondLast_ = nullptr;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
