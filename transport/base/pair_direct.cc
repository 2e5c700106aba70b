// Bytes that go straight to their place: into advertised memory, or read from
// memory that the sender announced.
#include <algorithm>
#include <optional>

#include "gloo/common/string.h"
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

std::optional<Rights> Pair::neededRights(const Operation& op) {
  const size_t eager = op.device < 0 ? caps_.eagerBytes : 0;
  if (op.bytes <= eager || link_ == nullptr || !caps_.needsRegions) {
    return std::nullopt;
  }
  if (op.isSend) {
    return pulls() || caps_.readByPeer ? Rights::kRemoteRead : Rights::kLocal;
  }
  const SlotState* state = slots_.find(op.slot);
  const Arrival* arrival = state != nullptr ? state->arrivals.front() : nullptr;
  if (wantsAdvert(op) && (arrival == nullptr || arrival->announced)) {
    return Rights::kRemoteWrite;
  }
  return std::nullopt;
}

// A long message that will need registered memory gets it before anything has
// changed: the caller hears of a limit, and the pair goes on.
void Pair::prepare(Operation& op, ProgressDomain::Lock& lock) {
  auto rights = neededRights(op);
  while (rights && context_.registerAhead(lock, op, *rights)) {
    // Others have gone on meanwhile.
    context_.presentPair(peer_, op.isSend ? nullptr : &op.slot);
    rights = neededRights(op);
  }
  if (rights) {
    context_.registerFor(op, *rights);
  }
}

// Memory that the link wants registered and that the caller has not is
// registered for this one operation. Where that fails the context does, since
// this may be anybody's thread.
const Region* Pair::ensureRegion(Operation& op, Rights rights) {
  if (op.region == nullptr && caps_.needsRegions) {
    try {
      context_.registerFor(op, rights);
    } catch (const Exception& e) {
      context_.failNew(internal::Cause::Kind::kIo, context_.rank(),
                       MakeString("rank ", context_.rank(), ": ", e.what()));
      return nullptr;
    }
  }
  return static_cast<const Region*>(op.region.get());
}

// The receive that advert `index` belongs to; introduces its message if this
// is the first that we hear of it. Null after a protocol error.
RecvEntry* Pair::directEntry(uint32_t index) {
  RecvEntry* entry = index < advertised_.size() ? advertised_[index] : nullptr;
  if (entry == nullptr || !entry->advertised) {
    protocolError(
        MakeString("bytes for advert ", index, ", which does not exist"));
  }
  return failed_ ? nullptr : entry;
}

char* Pair::onDirectPayload(const FrameHeader& header) {
  RecvEntry* entry = directEntry(header.index);
  if (entry == nullptr) {
    return nullptr;
  }
  if (!entry->introduced() && !introduceDirect(*entry, header)) {
    return nullptr;
  }
  Operation& op = *entry->op;
  if (header.bytes > op.bytes || header.offset > header.bytes ||
      header.payloadBytes > header.bytes - header.offset) {
    protocolError(MakeString("bytes ", header.offset, "+", header.payloadBytes,
                             " of a message of ", header.bytes,
                             " bytes, for a receive of ", op.bytes));
    return nullptr;
  }
  incoming_.what = Incoming::What::kOperation;
  incoming_.op = &op;
  return header.payloadBytes > 0 ? op.data + header.offset : control_;
}

bool Pair::introduceDirect(RecvEntry& entry, const FrameHeader& header) {
  if (entry.state->recvs.front() != &entry) {
    protocolError("a message for a receive before which others wait");
    return false;
  }
  noteIntroduction(static_cast<uint32_t>(header.number));
  if (failed_ || !agrees(*entry.op, header.bytes, header.check)) {
    return false;
  }
  takeIntroduced(entry);
  return true;
}

void Pair::onDirectEnd(const FrameHeader& header) {
  Operation& op = *incoming_.op;
  incoming_ = Incoming{};
  op.bytesDone.fetch_add(header.payloadBytes, std::memory_order_relaxed);
  if (!header.has(kLast)) {
    return;
  }
  if (caps_.remoteWrite) {
    op.bytesDone.store(
        header.bytes,
        std::memory_order_relaxed);  // they were written before this frame
  }
  if (op.bytesDone != header.bytes) {
    protocolError(MakeString("the last part of a message of ", header.bytes,
                             " bytes after ", op.bytesDone));
    return;
  }
  completeRecv(op, static_cast<RecvEntry*>(op.owner));
}

// push: the peer's write has filled the memory of an advert.
void Pair::onWritten(uint32_t immediate) try {
  if (failed_) {
    return;
  }
  moved_++;
  if ((immediate & kBoundImmediate) != 0) {
    onBoundWritten(immediate & ~kBoundImmediate);
    return;
  }
  RecvEntry* entry = directEntry(immediate);
  if (entry == nullptr) {
    return;
  }
  if (!entry->introduced()) {
    if (entry->state->recvs.front() != entry) {
      protocolError("a message for a receive before which others wait");
      return;
    }
    noteIntroduction(seen_ + 1);
    takeIntroduced(*entry);
  }
  Operation& op = *entry->op;
  op.bytesDone.store(op.bytes, std::memory_order_relaxed);
  completeRecv(op, entry);
} catch (const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
}

void Pair::pullMessage(Operation& op, const Arrival& arrival) {
  op.number = arrival.number;
  op.remoteAddress = arrival.remote.address;
  op.remoteKey = arrival.remote.key;
  op.bytesQueued = 0;
  op.wanted = arrival.bytes;
  readParts(op);
}

// pull: asks the link for the next parts of what `op` reads.
void Pair::readParts(Operation& op) {
  const Region* region = ensureRegion(op, Rights::kLocalWrite);
  if (failed_) {
    return;
  }
  while (op.phase != kRefused && op.bytesQueued < op.wanted && op.parts < 2) {
    const size_t bytes =
        std::min<size_t>(op.wanted - op.bytesQueued, caps_.maxFrameBytes);
    const RemoteMemory remote{op.remoteAddress + op.bytesQueued, op.remoteKey};
    char* to = op.data + op.bytesQueued;
    op.bytesQueued += bytes;
    if (!link_->read(to, bytes, region, remote, &op)) {
      op.parts++;
      inLink_ += weightOf(op);
    }
  }
  if (op.parts > 0) {
    return;
  }
  if (op.phase == kRefused) {
    op.phase = kIncoming;
    sendAdvert(*static_cast<RecvEntry*>(op.owner), FrameFlag::kReply,
               op.number);
  } else if (op.bytesQueued == op.wanted) {
    endPull(op);
  }
}

// Whoever has announced the message has it until it hears that it was read, or
// where it is wanted: then it sends all of it, whatever was read before.
void Pair::onReadRefused(void* token) try {
  if (failed_) {
    return;
  }
  auto& op = *static_cast<Operation*>(token);
  inLink_ -= weightOf(op);
  op.phase = kRefused;
  partDone(op);
  pump();
} catch (const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
}

void Pair::endPull(Operation& op) {
  op.bytesDone.store(op.wanted, std::memory_order_relaxed);
  if (op.kind == kGetRequest) {
    endRequest(op);
    finishOperation(op, Operation::State::kDone);
    return;
  }
  FrameHeader h = header(FrameType::kDone);
  h.slot = op.slot;
  h.number = op.number;
  sendControl(h);
  RecvEntry* entry = static_cast<RecvEntry*>(op.owner);
  completeRecv(op, entry);
}

// pull: the receiver has read the message.
void Pair::onPullDone(const FrameHeader& header) {
  Operation* op = announcedOperation(header.slot, header.number);
  if (op == nullptr) {
    protocolError("the end of a message that was not announced");
    return;
  }
  if (op->owner != nullptr) {
    protocolError("the end of a message that it has not seen");
    return;
  }
  SlotState& state = slots_.at(header.slot);
  state.announced.remove(op);
  addWaits(-1);
  op->bytesDone.store(op->bytes, std::memory_order_relaxed);
  finishOperation(*op, Operation::State::kDone);
  slots_.forgetIfIdle(state);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
