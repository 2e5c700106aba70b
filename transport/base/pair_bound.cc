// Bound buffers.
#include <algorithm>

#include "gloo/common/logging.h"
#include "transport/base/buffer.h"
#include "transport/base/context.h"
#include "transport/base/copy.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

// As it travels, sign-extended.
int slotOf(uint64_t slot) { return static_cast<int>(slot); }

}  // namespace

uint32_t Pair::addBound(ProgressDomain::Lock& lock, Buffer& buffer, int slot,
                        void* ptr, size_t size, const MemoryKind& kind) {
  Bound bound;
  bound.buffer = &buffer;
  bound.slot = slot;
  bound.ptr = static_cast<char*>(ptr);
  bound.size = size;
  bound.device = deviceOf(kind);
  if (caps_.needsRegions || bound.device >= 0) {
    bound.region =
        context_.registerMemory(ptr, size, kind, Rights::kRemoteWrite, &lock);
    // Meanwhile a link has come, or everything has failed.
    if (!caps_.needsRegions && bound.device < 0) {
      bound.region.reset();
    }
    context_.throwIfFailed("createRecvBuffer");
  }
  auto index = static_cast<uint32_t>(bounds_.size());
  if (freeBounds_.empty()) {
    if (freeBounds_.capacity() <= bounds_.size()) {
      freeBounds_.reserve(2 * bounds_.size() + 1);  // removeBound() needs none
    }
    bounds_.push_back(std::move(bound));
  } else {
    index = freeBounds_.back();
    freeBounds_.pop_back();
    bounds_[index] = std::move(bound);
  }
  if (link_ != nullptr) {
    advertiseBound(index);
  }
  return index;
}

void Pair::advertiseBound(uint32_t index) {
  const Bound& bound = bounds_[index];
  FrameHeader h = header(FrameType::kBufferAdvert);
  h.slot = static_cast<uint64_t>(static_cast<int64_t>(bound.slot));
  h.index = index;
  h.bytes = bound.size;
  if (bound.region != nullptr) {
    h.offset = bound.region->remoteAddress();
    h.key = bound.region->remoteKey();
  }
  context_.counts().advertsSent++;
  sendControl(h);
}

// What the peer has written already, or writes before it hears of this, goes
// unnoticed. The index stays taken until it has answered.
void Pair::withdrawBound(uint32_t index) {
  Bound& bound = bounds_[index];
  bound.buffer = nullptr;
  if (link_ == nullptr || departed_ || byeSent_ || failed_) {
    return;
  }
  bound.withdrawing = true;
  FrameHeader h = header(FrameType::kCancel, kBound);
  h.slot = static_cast<uint64_t>(static_cast<int64_t>(bound.slot));
  h.index = index;
  sendControl(h);
}

bool Pair::boundWithdrawn(uint32_t index) const {
  const bool receiving =
      incoming_.what == Incoming::What::kBound && incoming_.bound == index;
  return !receiving && (!bounds_[index].withdrawing || departed_);
}

// A write that names the index cannot come any more if the peer has answered,
// or never heard of it. Of one that is leaving nobody knows.
void Pair::removeBound(uint32_t index) {
  bounds_[index].region.reset();
  if (!bounds_[index].withdrawing && !departed_ && !byeSent_ && !failed_) {
    freeBounds_.push_back(index);
  }
}

const RemoteBound& Pair::useRemoteBound(int slot) {
  RemoteBound& remote = remoteBounds_[slot];
  remote.users++;
  return remote;
}

void Pair::releaseRemoteBound(int slot) {
  const auto it = remoteBounds_.find(slot);
  it->second.users--;
  forgetUnused(it);
}

void Pair::forgetUnused(std::map<int, RemoteBound>::iterator it) {
  const RemoteBound& remote = it->second;
  if (!remote.known && remote.users == 0 && remote.waiting.empty() &&
      !remote.writing) {
    remoteBounds_.erase(it);
  }
}

// The next send to that slot waits for another buffer, unless there is one
// already.
void Pair::onCancelOfBound(const FrameHeader& header) {
  if (header.has(kReply)) {
    Bound* bound = boundAt(header.index);
    if (bound != nullptr && !bound->withdrawing) {
      protocolError("an answer to the end of a bound buffer that lives");
    } else if (bound != nullptr) {
      bound->withdrawing = false;
    }
    return;
  }
  const auto it = remoteBounds_.find(slotOf(header.slot));
  if (it != remoteBounds_.end() && it->second.index == header.index) {
    it->second.known = false;
    forgetUnused(it);
  }
  withdrawn_.push_back(header.index);
  answerWithdrawals();
}

// Each behind the last write that was on its way to the buffer.
void Pair::answerWithdrawals() {
  if (byeSent_ || failed_) {
    return;
  }
  std::erase_if(withdrawn_, [this](uint32_t index) {
    if (writesTo(index)) {
      return false;
    }
    FrameHeader h = header(FrameType::kCancel, kBound | kReply);
    h.index = index;
    sendControl(h);
    return true;
  });
}

// Some parts are not with the link yet.
bool Pair::writesTo(uint32_t index) const {
  const auto anyIn = [index](const Fifo<Operation>& ops) {
    const Operation* op = ops.front();
    while (op != nullptr && (op->kind != kBoundWrite || op->index != index)) {
      op = op->next;
    }
    return op != nullptr;
  };
  return anyIn(active_) ||
         std::any_of(
             remoteBounds_.begin(), remoteBounds_.end(),
             [&](const auto& bound) { return anyIn(bound.second.behind); });
}

bool Pair::writeBoundNow(const RemoteBound& remote, const char* from,
                         size_t bytes, uint64_t offset) {
  return link_ != nullptr && bytes <= caps_.copiedBytes && remote.known &&
         remote.waiting.empty() && active_.empty() && !failed_ && !departed_ &&
         link_->writeNow(from, bytes,
                         {remote.remote.address + offset, remote.remote.key},
                         remote.index | kBoundImmediate);
}

void Pair::startBoundWrite(Operation& op) {
  if (link_ == nullptr) {
    op.phase = kBacklog;
    backlog_.pushBack(&op);
    return;
  }
  RemoteBound& remote = remoteBounds_[static_cast<int>(op.slot)];
  if (!remote.known || !remote.waiting.empty()) {
    op.phase = kAnnounced;
    remote.waiting.pushBack(&op);
    addWaits(1);
    return;
  }
  writeBound(op, remote);
}

void Pair::writeBound(Operation& op, RemoteBound& remote) {
  if (op.remoteOffset > remote.bytes ||
      op.bytes > remote.bytes - op.remoteOffset) {
    context_.failNew(
        internal::Cause::Kind::kMismatch, peer_,
        MakeString("a write of ", op.bytes, " bytes at offset ",
                   op.remoteOffset, " does not fit the buffer of ",
                   remote.bytes, " bytes that rank ", peer_, " bound to slot ",
                   static_cast<int64_t>(op.slot)));
    return;
  }
  op.index = remote.index;
  op.remoteAddress = remote.remote.address;
  op.remoteKey = remote.remote.key;
  op.owner = &remote;
  op.phase = kActive;
  if (remote.writing) {
    remote.behind.pushBack(&op);
    return;
  }
  remote.writing = true;
  activate(op);
}

// All of a write is with the link.
void Pair::writeNext(RemoteBound& remote) {
  Operation* const op = remote.behind.popFront();
  remote.writing = op != nullptr;
  if (op != nullptr) {
    makeActive(*op);
  }
}

void Pair::onBoundAdvert(const FrameHeader& header) {
  const auto slot = static_cast<int64_t>(header.slot);
  if (slot < INT32_MIN || slot > INT32_MAX) {
    protocolError(MakeString("a buffer bound to slot ", slot));
    return;
  }
  RemoteBound& remote = remoteBounds_[static_cast<int>(slot)];
  remote.known = true;
  remote.bytes = header.bytes;
  remote.index = header.index;
  remote.remote = {header.offset, header.key};
  while (!failed_ && !remote.waiting.empty()) {
    addWaits(-1);
    writeBound(*remote.waiting.popFront(), remote);
  }
}

void Pair::cancelBound(Operation& op) {
  remoteBounds_[slotOf(op.slot)].waiting.remove(&op);
  addWaits(-1);
  finishOperation(op, Operation::State::kCancelled);
}

Pair::Bound* Pair::boundAt(uint32_t index) {
  return index < bounds_.size() ? &bounds_[index] : noBound(index);
}

[[gnu::noinline]] Pair::Bound* Pair::noBound(uint32_t index) {
  protocolError(
      MakeString("bytes for bound buffer ", index, ", which does not exist"));
  return nullptr;
}

// The buffer that a write of these bytes is for; null after a protocol error.
Pair::Bound* Pair::boundFor(uint32_t index, uint64_t offset, size_t bytes) {
  Bound* bound = boundAt(index);
  if (bound != nullptr &&
      (offset > bound->size || bytes > bound->size - offset)) {
    protocolError(MakeString("bytes ", offset, "+", bytes,
                             " for a bound buffer of ", bound->size));
    return nullptr;
  }
  return bound;
}

char* Pair::onBoundPayload(const FrameHeader& header) {
  Bound* bound = boundFor(header.index, header.offset, header.payloadBytes);
  if (bound == nullptr) {
    return nullptr;
  }
  if (bound->buffer == nullptr) {
    return discard(header.payloadBytes);
  }
  incoming_.what = Incoming::What::kBound;
  incoming_.bound = header.index;
  return header.payloadBytes > 0 ? bound->ptr + header.offset : control_;
}

void Pair::onBound(uint32_t index, uint64_t offset, const char* payload,
                   size_t bytes) try {
  if (failed_) {
    return;
  }
  heard_ = true;
  moved_++;
  const Bound* bound = boundFor(index, offset, bytes);
  if (bound != nullptr && bound->buffer != nullptr) {
    copyBytes(bound->ptr + offset, payload, bytes);
    noteWritten(*bound);
  }
} catch (const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
}

void Pair::onBoundEnd(const FrameHeader& header) {
  incoming_ = Incoming{};
  if (header.has(kLast)) {
    onBoundWritten(header.index);
  }
}

void Pair::onBoundWritten(uint32_t index) {
  const Bound* bound = boundAt(index);
  if (bound != nullptr && bound->buffer != nullptr) {
    noteWritten(*bound);
  }
}

void Pair::noteWritten(const Bound& bound) {
  if (bound.device < 0 || context_.makeVisible(bound.device, bound.ptr)) {
    bound.buffer->onArrival();
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
