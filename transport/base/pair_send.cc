// Messages, the sender's side.
#include <algorithm>

#include "gloo/common/string.h"
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

// What one pair may have with the link at a time: two parts, or as many short
// ones as keep a link busy while their completions are on their way. No
// attribute: more makes no link busier, and what it has no room for it keeps.
constexpr int kInLink = 16;
constexpr int kPartWeight = 8;
constexpr size_t kShortBytes = size_t{64} << 10;
// Bytes that one call hands over before other work gets its turn.
constexpr size_t kPumpBytes = size_t{1} << 20;

}  // namespace

int Pair::weightOf(const Operation& op) {
  return op.bytes <= kShortBytes ? 1 : kPartWeight;
}

// A message that would keep the link for long, and all that follows it waiting.
// Announced first, it may be overtaken: as if its advert had come just now.
bool Pair::takesTurns(const Operation& op) const {
  return caps_.remoteWrite &&
         op.bytes / (kInLink / kPartWeight) > caps_.maxFrameBytes;
}

void Pair::startSend(Operation& op) {
  if (link_ == nullptr) {
    op.phase = kBacklog;
    backlog_.pushBack(&op);
    return;
  }
  SlotState& state = slots_.at(op.slot);
  if (state.hasAdvert()) {
    StoredAdvert* advert = state.adverts.popFront();
    const StoredAdvert copy = *advert;
    context_.adverts.give(advert);
    const bool announced = takesTurns(op);
    introduce(op, state, announced);
    if (announced) {
      announce(op, state);
      if (!failed_) {
        serve(op, copy);
      }
    } else if (prepareDirect(op, copy)) {
      activateAtOnce(op);
    }
  } else if (op.bytes <= caps_.eagerBytes && costOf(op.bytes) <= credits_ &&
             (op.bytes == 0 || op.device < 0)) {
    introduce(op, state, false);
    sendEager(op);
  } else {
    introduce(op, state, true);
    announce(op, state);
  }
}

bool Pair::wouldAnnounce(uint64_t slot, size_t bytes) const {
  if (link_ == nullptr || !caps_.remoteWrite || bytes <= caps_.eagerBytes) {
    return false;
  }
  const SlotState* state = slots_.find(slot);
  return state == nullptr || !state->hasAdvert();
}

void Pair::sendEager(Operation& op) {
  credits_ -= costOf(op.bytes);
  FrameHeader h = header(FrameType::kData, kFirst | kLast);
  h.payloadBytes = static_cast<uint32_t>(op.bytes);
  h.slot = op.slot;
  h.number = op.number;
  h.bytes = op.bytes;
  h.check = op.check;
  context_.counts().eagerSent++;
  op.bytesQueued = op.bytes;
  op.bytesDone.store(op.bytes, std::memory_order_relaxed);
  op.phase = kQueuedOut;
  if (op.more) {
    link_->hold();
  }
  if (link_->send(h, op.data, &op)) {
    finishOperation(op, Operation::State::kDone);
  } else {
    op.parts++;
    inLink_ += weightOf(op);
  }
}

void Pair::announce(Operation& op, SlotState& state) {
  op.phase = kAnnounced;
  op.more = false;  // it leaves when its receive is there
  state.announced.pushBack(&op);
  addWaits(1);
  FrameHeader h = header(FrameType::kAnnounce);
  h.slot = op.slot;
  h.number = op.number;
  h.bytes = op.bytes;
  h.check = op.check;
  if (pulls() || caps_.readByPeer) {
    h.offset = reinterpret_cast<uint64_t>(op.data);
    if (const Region* region = ensureRegion(op, Rights::kRemoteRead)) {
      h.offset = region->remoteAddress() + op.regionOffset;
      h.key = region->remoteKey();
    }
    if (failed_) {
      return;
    }
    link_->lend(op.data, op.bytes);
  }
  context_.counts().announcesSent++;
  sendControl(h);
}

// An announced message has got memory.
void Pair::serve(Operation& op, const StoredAdvert& advert) {
  SlotState& state = slots_.at(op.slot);
  state.announced.remove(&op);
  addWaits(-1);
  if (op.owner != nullptr) {
    static_cast<Intro*>(op.owner)->op = nullptr;
    op.owner = nullptr;
  }
  if (prepareDirect(op, advert)) {
    activate(op);
  }
  slots_.forgetIfIdle(state);
}

// Compares collectives and sizes before a byte moves.
bool Pair::prepareDirect(Operation& op, const StoredAdvert& advert) {
  if (!sameCollective(op, advert.check)) {
    return false;
  }
  if (op.bytes > advert.bytes) {
    context_.failNew(
        internal::Cause::Kind::kMismatch, peer_,
        MakeString("a message of ", op.bytes, " bytes from rank ",
                   context_.rank(),
                   " is longer than its receive"
                   " of ",
                   advert.bytes, " bytes on rank ", peer_, ", slot ", op.slot));
    return false;
  }
  context_.counts().directSent++;
  op.index = advert.index;
  op.remoteAddress = advert.remote.address;
  op.remoteKey = advert.remote.key;
  op.remoteOffset = 0;
  // A write that fills the advert is told by its immediate alone; otherwise
  // a frame with the length follows.
  op.exact = op.bytes == advert.bytes && op.bytes > 0;
  return true;
}

void Pair::activate(Operation& op) {
  makeActive(op);
  pump();
}

void Pair::makeActive(Operation& op) {
  op.phase = kActive;
  op.bytesQueued = 0;
  active_.pushBack(&op);
}

// A direct message that nothing has announced introduces itself, so it must
// not be overtaken by later ones: its first part (push: its last, which the
// peer is told of, and which is near: see takesTurns) goes to the link now,
// whatever is there already.
void Pair::activateAtOnce(Operation& op) {
  op.phase = kActive;
  op.bytesQueued = 0;
  size_t given = 0;
  bool more = sendPart(op, &given);
  while (more && caps_.remoteWrite) {
    more = sendPart(op, &given);
  }
  if (more) {
    active_.pushBack(&op);
    pump();
  }
}

bool Pair::pump() {
  bool moved = false;
  size_t given = 0;
  while (!failed_ && !active_.empty() && inLink_ < kInLink) {
    if (given >= kPumpBytes) {
      context_.device().addPump(pump_);
      return moved;
    }
    Operation* op = active_.popFront();
    auto* const bound = op->kind == kBoundWrite
                            ? static_cast<RemoteBound*>(op->owner)
                            : nullptr;
    if (sendPart(*op, &given)) {
      active_.pushBack(op);  // the others have their turn
    } else if (bound != nullptr && !failed_) {
      writeNext(*bound);
    }
    moved = true;
  }
  context_.device().removePump(pump_);
  if (!withdrawn_.empty()) {
    answerWithdrawals();
  }
  return moved;
}

bool Pair::pumpOrFail() try { return pump(); } catch (const std::exception& e) {
  context_.failAfter(e, "a message to", peer_);
  return true;
}

// Over a link that writes what is long, an answer to a get must fit a frame.
size_t Pair::mostOfPart(const Operation& op) const {
  if (!caps_.remoteWrite || op.kind != kGetReply) {
    return caps_.maxFrameBytes;
  }
  return std::min(caps_.maxFrameBytes,
                  std::max(caps_.eagerBytes, kMaxControlPayload));
}

// Gives one more part to the link, and adds its bytes to *given. True if there
// is more; else the operation may have ended, and belong to its owner again.
bool Pair::sendPart(Operation& op, size_t* given) {
  const size_t bytes =
      std::min<size_t>(op.bytes - op.bytesQueued, mostOfPart(op));
  const bool first = op.bytesQueued == 0;
  const bool last = op.bytesQueued + bytes == op.bytes;
  const char* from = op.data + op.bytesQueued;
  const uint64_t offset = op.bytesQueued;
  op.bytesQueued += bytes;
  *given += FrameHeader::kBytes + bytes;  // a peer may want short parts
  bool left;
  if (caps_.remoteWrite && op.kind != kGetReply) {
    left = writePart(op, from, bytes, offset, last);
    if (failed_) {
      return false;
    }
  } else {
    FrameHeader h = partHeader(op, offset);
    h.flags |= (first ? kFirst : 0) | (last ? kLast : 0);
    h.payloadBytes = static_cast<uint32_t>(bytes);
    if (op.more) {
      link_->hold();
    }
    left = link_->send(h, from, &op);
  }
  if (last) {
    op.phase = kQueuedOut;
  }
  op.parts++;
  if (left) {
    partDone(op);
  } else {
    inLink_ += weightOf(op);
  }
  return !last;
}

FrameHeader Pair::partHeader(const Operation& op, uint64_t offset) {
  FrameHeader h = header(FrameType::kData);
  h.number = op.number;
  h.bytes = op.bytes;
  h.offset = op.remoteOffset + offset;
  h.slot = op.slot;
  h.index = op.index;
  switch (op.kind) {
    case kMessage:
      h.flags = kDirect;
      h.check = op.check;
      break;
    case kBoundWrite:
      h.number = 0;  // it is our buffer's own
      h.flags = kBound;
      break;
    case kPutRequest:
      h.flags = kPut;
      h.key = op.index;
      break;
    default:
      h.flags = kReply;
      break;
  }
  return h;
}

// push: the part is written straight into the peer's memory.
bool Pair::writePart(Operation& op, const char* from, size_t bytes,
                     uint64_t offset, bool last) {
  const RemoteMemory remote{op.remoteAddress + op.remoteOffset + offset,
                            op.remoteKey};
  const bool told =
      last && (op.kind == kBoundWrite || (op.kind == kMessage && op.exact));
  const bool copied = told && bytes <= caps_.copiedBytes && op.device < 0;
  const Region* region = copied ? nullptr : ensureRegion(op, Rights::kLocal);
  if (failed_) {
    return false;
  }
  const uint32_t immediate =
      !told ? kNoImmediate
            : op.index | (op.kind == kBoundWrite ? kBoundImmediate : 0);
  const bool framed = last && op.kind == kMessage && !op.exact;
  bool left = true;
  if (bytes > 0 || told) {
    if (framed) {
      link_->hold();
    }
    left = link_->write(from, bytes, region, remote, immediate, &op);
  }
  if (framed) {
    FrameHeader h = partHeader(op, op.bytes);
    h.flags |= kFirst | kLast;
    sendControl(h);
  }
  return left;
}

void Pair::partDone(Operation& op) {
  op.parts--;
  if (!op.isSend || op.kind == kGetRequest) {
    readParts(op);
    return;
  }
  if ((op.phase != kQueuedOut && op.phase != kAnswered) || op.parts > 0) {
    return;
  }
  op.bytesDone.store(op.bytes, std::memory_order_relaxed);
  if (op.kind == kPutRequest && !caps_.remoteWrite && op.phase != kAnswered) {
    op.phase = kAwaitDone;  // the target answers
    return;
  }
  if (op.kind == kPutRequest) {
    endRequest(op);
  }
  finishOperation(op, Operation::State::kDone);
}

// Adverts.

void Pair::onAdvert(const FrameHeader& header) {
  if (contradicts(header)) {
    return;
  }
  StoredAdvert advert;
  advert.index = header.index;
  advert.bytes = header.bytes;
  advert.check = header.check;
  advert.remote = {header.offset, header.key};
  if (header.has(kReply)) {
    if (Operation* op = announcedOperation(header.slot, header.number)) {
      serve(*op, advert);
    } else {
      protocolError("memory for a message that was not announced");
    }
    return;
  }
  SlotState& state = slots_.at(header.slot);
  if (header.number < state.unseen) {
    Intro* intro = state.unseenFront;
    for (uint64_t i = 0; i < header.number; i++) {
      intro = intro->nextOnSlot;
    }
    if (intro->op != nullptr) {
      serve(*intro->op, advert);  // may forget the state
    }
    return;
  }
  StoredAdvert* stored = context_.adverts.take();
  *stored = advert;
  stored->target = state.sent + (header.number - state.unseen);
  if (!state.adverts.empty() &&
      state.adverts.back()->target >= stored->target) {
    context_.adverts.give(stored);
    protocolError("two adverts for one message");
    return;
  }
  state.adverts.pushBack(stored);
}

Operation* Pair::announcedOperation(uint64_t slot, uint64_t number) {
  SlotState* state = slots_.find(slot);
  Operation* op = state != nullptr ? state->announced.front() : nullptr;
  while (op != nullptr && op->number != number) {
    op = op->next;
  }
  return op;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
