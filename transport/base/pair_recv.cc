// Messages, the receiver's side.
#include <algorithm>

#include "gloo/common/string.h"
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

void Pair::startRecv(Operation& op) {
  SlotState& state = slots_.at(op.slot);
  if (Arrival* arrival = state.arrivals.front()) {
    meet(op, *arrival);
    return;
  }
  RecvEntry* entry = queueRecv(op, state, false);
  op.owner = entry;
  if (wantsAdvert(op) && state.wildcards == 0 && mayAdvertise() &&
      state.cancelling == 0) {
    sendAdvert(*entry, 0, state.recvs.size() - 1);
  }
}

bool Pair::hasArrival(uint64_t slot) const {
  const SlotState* state = slots_.find(slot);
  // What a peer that has left only announced will not come.
  return state != nullptr && !state->arrivals.empty() &&
         !(departed_ && state->arrivals.front()->announced);
}

void Pair::meetFirst(Operation& op) {
  meet(op, *slots_.at(op.slot).arrivals.front());
}

RecvEntry* Pair::queueFromAny(Operation& op) {
  return queueRecv(op, slots_.at(op.slot), true);
}

// Appends a receive to its queue.
RecvEntry* Pair::queueRecv(Operation& op, SlotState& state, bool wildcard) {
  RecvEntry* entry = context_.entries.take();
  *entry = RecvEntry{};
  entry->op = &op;
  entry->pair = this;
  entry->state = &state;
  entry->sibling = wildcard ? entry : nullptr;
  state.wildcards += wildcard ? 1 : 0;
  state.recvs.pushBack(entry);
  op.phase = kQueued;
  addWaits(1);
  return entry;
}

// Out of the queue, if it is in one.
void Pair::dropEntry(RecvEntry* entry) {
  if (entry->advertised || entry->cancelling) {
    freeIndex(*entry);
  }
  addWaits(-1);
  if (SlotState* state = entry->state) {
    state->advertised -= entry->advertised ? 1 : 0;
    state->recvs.remove(entry);
    if (entry->wildcard()) {
      state->wildcards--;
      advertiseUnblocked(*state);
    }
    slots_.forgetIfIdle(*state);
  }
  context_.entries.give(entry);
}

// Takes the first receive off the queue (and off its siblings' queues) for a
// message whose bytes are here or arrive in this frame. What it was in the way
// of is advertised: that may fail, and with it the context and the receive.
Operation* Pair::takeFront(SlotState& state) {
  RecvEntry* entry = state.recvs.front();
  Operation* op = entry->op;
  op->peer = peer_;
  op->owner = nullptr;
  RecvEntry* sibling = entry->sibling;
  while (sibling != nullptr && sibling != entry) {
    RecvEntry* following = sibling->sibling;
    sibling->pair->dropEntry(sibling);
    sibling = following;
  }
  dropEntry(entry);
  return op;
}

// Whether what came with this frame is of another collective than this rank
// runs, or has run lately, with its tag.
bool Pair::contradicts(const FrameHeader& header) {
  const bool isMessage =
      header.type == FrameType::kData || header.type == FrameType::kAnnounce;
  return header.check != 0 &&
         !context_.hear(peer_, header.slot, header.check, isMessage);
}

// Of what meets one of our operations.
bool Pair::sameCollective(const Operation& op, uint64_t check) {
  if (internal::checksAgree(op.check, check)) {
    return true;
  }
  context_.failMismatch(internal::tagOf(op.slot), {context_.rank(), op.check},
                        {peer_, check});
  return false;
}

// Compares collectives and sizes before a byte moves.
bool Pair::agrees(const Operation& op, uint64_t bytes, uint64_t check) {
  if (!sameCollective(op, check)) {
    return false;
  }
  if (bytes > op.bytes) {
    context_.failNew(
        internal::Cause::Kind::kMismatch, peer_,
        MakeString("a message of ", bytes, " bytes from rank ", peer_,
                   " is longer than its receive of ", op.bytes,
                   " bytes on rank ", context_.rank(), ", slot ", op.slot));
    return false;
  }
  return true;
}

void Pair::noteIntroduction(uint32_t number) {
  if (number != seen_ + 1) {
    protocolError(MakeString("message ", number, " after message ", seen_));
    return;
  }
  seen_ = number;
}

// ---- Eager messages ----

char* Pair::onEagerPayload(const FrameHeader& header) {
  const uint64_t cost = costOf(header.bytes);
  if (header.bytes != header.payloadBytes || cost > granted_) {
    protocolError(MakeString("an eager message of ", header.bytes,
                             " bytes in a frame of ", header.payloadBytes,
                             ", with credits for ", granted_));
    return nullptr;
  }
  granted_ -= cost;
  noteIntroduction(static_cast<uint32_t>(header.number));
  if (failed_ || contradicts(header)) {
    return nullptr;
  }
  SlotState& state = slots_.at(header.slot);
  if (RecvEntry* entry = state.recvs.front()) {
    if (!agrees(*entry->op, header.bytes, header.check)) {
      return nullptr;
    }
    Operation* op = takeFront(state);
    if (failed_) {
      return nullptr;
    }
    op->phase = kIncoming;
    if (header.payloadBytes > 0 && op->device >= 0) {
      return stash(header, nullptr, op);
    }
    incoming_.what = Incoming::What::kOperation;
    incoming_.op = op;
    return header.payloadBytes > 0 ? op->data : control_;
  }
  context_.counts().unexpected++;
  return stash(header, &state, nullptr);
}

// Bounce memory for an eager message that waits on its slot, or that its
// receive takes from there.
char* Pair::stash(const FrameHeader& header, SlotState* state, Operation* op) {
  Arrival* arrival = context_.arrivals.take();
  *arrival = Arrival{};
  arrival->state = state;
  arrival->number = static_cast<uint32_t>(header.number);
  arrival->bytes = header.bytes;
  arrival->check = header.check;
  arrival->stash = context_.bounce.take(header.bytes);
  arrival->op = op;
  if (state != nullptr) {
    state->arrivals.pushBack(arrival);
  }
  incoming_.what = Incoming::What::kArrival;
  incoming_.arrival = arrival;
  return arrival->stash;
}

void Pair::onEagerEnd(const FrameHeader& header) {
  if (incoming_.what == Incoming::What::kOperation) {
    Operation& op = *incoming_.op;
    incoming_ = Incoming{};
    op.bytesDone.store(header.bytes, std::memory_order_relaxed);
    finishOperation(op, Operation::State::kDone);
    returnCredits(costOf(header.bytes));
    return;
  }
  Arrival& arrival = *incoming_.arrival;
  incoming_ = Incoming{};
  arrival.complete = true;
  if (Operation* op = arrival.op) {
    arrival.op = nullptr;
    unstash(*op, arrival);
  }
}

// A receive takes the first message that waits on its slot.
void Pair::meet(Operation& op, Arrival& arrival) {
  op.peer = peer_;  // by which it is taken back, whatever follows
  if (!agrees(op, arrival.bytes, arrival.check)) {
    return;
  }
  if (arrival.announced) {
    SlotState& state = *arrival.state;
    const Arrival copy = arrival;
    state.arrivals.remove(&arrival);
    context_.arrivals.give(&arrival);
    slots_.forgetIfIdle(state);
    answerAnnounce(op, copy);
    return;
  }
  SlotState& state = *arrival.state;
  state.arrivals.remove(&arrival);
  arrival.state = nullptr;
  slots_.forgetIfIdle(state);
  op.phase = kIncoming;
  if (arrival.complete) {
    unstash(op, arrival);
  } else {
    arrival.op = &op;  // its bytes are arriving right now
  }
}

void Pair::unstash(Operation& op, Arrival& arrival) {
  const uint64_t bytes = arrival.bytes;
  const bool copied =
      context_.copyMemory(op.device, op.data, arrival.stash, bytes);
  context_.counts().bytesCopied += bytes;
  context_.bounce.give(arrival.stash, bytes);
  context_.arrivals.give(&arrival);
  if (!copied) {
    return;
  }
  op.bytesDone.store(bytes, std::memory_order_relaxed);
  finishOperation(op, Operation::State::kDone);
  returnCredits(costOf(bytes));
}

// ---- Announced and direct messages ----

void Pair::onAnnounce(const FrameHeader& header) {
  noteIntroduction(static_cast<uint32_t>(header.number));
  if (failed_ || contradicts(header)) {
    return;
  }
  SlotState& state = slots_.at(header.slot);
  Arrival arrival;
  arrival.state = &state;
  arrival.number = static_cast<uint32_t>(header.number);
  arrival.announced = true;
  arrival.bytes = header.bytes;
  arrival.check = header.check;
  arrival.remote = {header.offset, header.key};
  RecvEntry* entry = state.recvs.front();
  if (entry == nullptr) {
    Arrival* kept = context_.arrivals.take();
    *kept = arrival;
    state.arrivals.pushBack(kept);
    context_.counts().unexpected++;
    return;
  }
  if (!agrees(*entry->op, header.bytes, header.check)) {
    return;
  }
  if (entry->advertised) {
    takeIntroduced(*entry);  // the sender finds the advert on its way
    return;
  }
  Operation* op = takeFront(state);
  if (!failed_) {
    answerAnnounce(*op, arrival);
  }
}

// The front of the queue has its message: it leaves the queue and waits for the
// bytes.
void Pair::takeIntroduced(RecvEntry& entry) {
  SlotState& state = *entry.state;
  state.advertised -= entry.advertised ? 1 : 0;
  state.recvs.remove(&entry);
  entry.state = nullptr;
  entry.op->phase = kIncoming;
  entry.op->peer = peer_;
  slots_.forgetIfIdle(state);
}

// The receive tells the sender where to put it, or reads it if the link can.
void Pair::answerAnnounce(Operation& op, const Arrival& arrival) {
  RecvEntry* entry = context_.entries.take();
  *entry = RecvEntry{};
  entry->op = &op;
  entry->pair = this;
  op.owner = entry;
  op.peer = peer_;
  op.phase = kIncoming;
  addWaits(1);
  if (link_->reads(arrival.remote, arrival.bytes,
                   context_.domain().crowded())) {
    pullMessage(op, arrival);
  } else {
    sendAdvert(*entry, FrameFlag::kReply, arrival.number);
  }
}

void Pair::sendAdvert(RecvEntry& entry, uint8_t flags, uint64_t number) {
  Operation& op = *entry.op;
  const Region* region = ensureRegion(op, Rights::kRemoteWrite);
  if (failed_) {
    return;
  }
  entry.index = takeIndex(&entry);
  entry.advertised = true;
  if (SlotState* state = entry.state) {
    state->advertised++;
  }
  FrameHeader h = header(FrameType::kAdvert, flags);
  h.index = entry.index;
  h.slot = op.slot;
  h.number = number;
  h.bytes = op.bytes;
  h.check = op.check;
  if (region != nullptr) {
    h.offset = region->remoteAddress() + op.regionOffset;
    h.key = region->remoteKey();
  }
  context_.counts().advertsSent++;
  sendControl(h);
}

bool Pair::mayAdvertise() const {
  return link_ != nullptr && !byeSent_ && !failed_;
}

// What may not be copied eagerly is told where to go, however short.
bool Pair::wantsAdvert(const Operation& op) const {
  return op.bytes > (op.device < 0 ? caps_.eagerBytes : 0) &&
         op.bytes <= caps_.advertBytes;
}

// Adverts for all receives that are long enough and whose position is known.
void Pair::advertiseUnblocked(SlotState& state) {
  if (!mayAdvertise() || state.cancelling > 0) {
    return;
  }
  uint64_t position = 0;
  for (RecvEntry* entry = state.recvs.front(); entry != nullptr;
       entry = entry->next, position++) {
    if (entry->wildcard()) {
      return;
    }
    if (wantsAdvert(*entry->op) && !entry->advertised) {
      sendAdvert(*entry, 0, position);
      if (failed_) {
        return;
      }
    }
  }
}

void Pair::completeRecv(Operation& op, RecvEntry* entry) {
  op.owner = nullptr;
  finishOperation(op, Operation::State::kDone);
  dropEntry(entry);
}

uint32_t Pair::takeIndex(RecvEntry* entry) {
  if (freeIndices_.empty()) {
    const auto from = static_cast<uint32_t>(advertised_.size());
    advertised_.resize(from + 64);
    for (uint32_t i = from + 64; i-- > from;) {
      freeIndices_.push_back(i);
    }
    freeIndices_.reserve(advertised_.size());
  }
  const uint32_t index = freeIndices_.back();
  freeIndices_.pop_back();
  advertised_[index] = entry;
  return index;
}

// An index that a kCancel names must not be used again before its answer.
void Pair::freeIndex(RecvEntry& entry) {
  advertised_[entry.index] = nullptr;
  if (!entry.cancelling) {
    freeIndices_.push_back(entry.index);
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
