// Bound buffers, put and get.
#include <algorithm>

#include "gloo/common/logging.h"
#include "transport/base/buffer.h"
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// ---- Bound buffers ----

uint32_t Pair::addBound(Buffer& buffer, int slot, void* ptr, size_t size,
                        const MemoryKind& kind) {
  const auto index = static_cast<uint32_t>(bounds_.size());
  Bound bound;
  bound.buffer = &buffer;
  bound.slot = slot;
  bound.ptr = static_cast<char*>(ptr);
  bound.size = size;
  bound.device = deviceOf(kind);
  if (caps_.needsRegions || bound.device >= 0) {
    bound.region =
        context_.registerMemory(ptr, size, kind, Rights::kRemoteWrite);
  }
  bounds_.push_back(std::move(bound));
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
// unnoticed. The index stays taken.
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

void Pair::removeBound(uint32_t index) { bounds_[index].region.reset(); }

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
  for (auto& [slot, remote] : remoteBounds_) {
    remote.known = remote.known && remote.index != header.index;
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
    for (Operation* op = active_.front(); op != nullptr; op = op->next) {
      if (op->kind == kBoundWrite && op->index == index) {
        return false;
      }
    }
    FrameHeader h = header(FrameType::kCancel, kBound | kReply);
    h.index = index;
    sendControl(h);
    return true;
  });
}

bool Pair::writeBoundNow(const RemoteBound& remote, const char* from,
                         size_t bytes, uint64_t offset) {
  return link_ != nullptr && bytes <= caps_.copiedBytes && remote.known &&
         remote.waiting.empty() && active_.empty() && !failed_ && !departed_ &&
         link_->writeNow(from, bytes,
                         {remote.remote.address + offset, remote.remote.key},
                         remote.index | kBoundImmediate);
}

void Pair::startBoundWrite(Operation& op, int slot, uint64_t offset) {
  op.slot = static_cast<uint64_t>(static_cast<int64_t>(slot));
  op.remoteOffset = offset;
  if (link_ == nullptr) {
    op.phase = kBacklog;
    backlog_.pushBack(&op);
    return;
  }
  RemoteBound& remote = remoteBounds_[slot];
  if (!remote.known || !remote.waiting.empty()) {
    op.phase = kAnnounced;
    remote.waiting.pushBack(&op);
    addWaits(1);
    return;
  }
  writeBound(op, remote);
}

void Pair::writeBound(Operation& op, const RemoteBound& remote) {
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
  activate(op);
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
  remoteBounds_[static_cast<int>(static_cast<int64_t>(op.slot))].waiting.remove(
      &op);
  addWaits(-1);
  finishOperation(op, Operation::State::kCancelled);
}

Pair::Bound* Pair::boundAt(uint32_t index) {
  if (index < bounds_.size()) {
    return &bounds_[index];
  }
  protocolError(
      MakeString("bytes for bound buffer ", index, ", which does not exist"));
  return nullptr;
}

char* Pair::onBoundPayload(const FrameHeader& header) {
  Bound* bound = boundAt(header.index);
  if (bound == nullptr) {
    return nullptr;
  }
  if (header.offset > bound->size ||
      header.payloadBytes > bound->size - header.offset) {
    protocolError(MakeString("bytes ", header.offset, "+", header.payloadBytes,
                             " for a bound buffer of ", bound->size));
    return nullptr;
  }
  if (bound->buffer == nullptr) {
    return discard(header.payloadBytes);
  }
  incoming_.what = Incoming::What::kBound;
  incoming_.bound = header.index;
  return header.payloadBytes > 0 ? bound->ptr + header.offset : control_;
}

void Pair::onBoundEnd(const FrameHeader& header) {
  incoming_ = Incoming{};
  if (header.has(kLast)) {
    onBoundWritten(header.index);
  }
}

void Pair::onBoundWritten(uint32_t index) {
  Bound* bound = boundAt(index);
  if (bound != nullptr && bound->buffer != nullptr &&
      (bound->device < 0 || context_.makeVisible(bound->device))) {
    bound->buffer->onArrival();
  }
}

// ---- Put and get ----

uint64_t Pair::addRequest(Operation& op) {
  if (freeRequests_.empty()) {
    freeRequests_.push_back(static_cast<uint32_t>(requests_.size()));
    requests_.push_back(nullptr);
  }
  const uint32_t at = freeRequests_.back();
  freeRequests_.pop_back();
  requests_[at] = &op;
  op.number = (++requestSerial_ << 32) | at;
  addWaits(1);
  return op.number;
}

Operation* Pair::request(uint64_t number) {
  const auto at = static_cast<uint32_t>(number);
  Operation* op = at < requests_.size() ? requests_[at] : nullptr;
  if (op == nullptr || op->number != number) {
    protocolError("an answer to a request that nobody made");
    return nullptr;
  }
  return op;
}

void Pair::endRequest(Operation& op) {
  const auto at = static_cast<uint32_t>(op.number);
  requests_[at] = nullptr;
  freeRequests_.push_back(at);
  addWaits(-1);
}

void Pair::startRequest(Operation& op) {
  if (link_ == nullptr) {
    op.phase = kBacklog;
    backlog_.pushBack(&op);
    return;
  }
  addRequest(op);
  if (op.kind == kPutRequest) {
    activate(op);
    return;
  }
  op.phase = kAwaitDone;
  if (caps_.remoteWrite && caps_.remoteRead) {
    op.remoteAddress += op.remoteOffset;
    op.wanted = op.bytes;
    op.bytesQueued = 0;
    readParts(op);
    return;
  }
  FrameHeader h = header(FrameType::kGet);
  h.number = op.number;
  h.key = op.index;
  h.offset = op.remoteOffset;
  h.bytes = op.bytes;
  sendControl(h);
}

void Pair::refuseRequest(uint64_t number, const std::string& why) {
  FrameHeader h = header(FrameType::kDone, kReply | kError);
  h.number = number;
  h.payloadBytes = static_cast<uint32_t>(why.size());
  sendControl(h, why.data());
}

// The exported region that [offset, offset + bytes) lies in; null, and why, if
// there is none.
ExportedRegion* Pair::exportedRange(uint32_t key, uint64_t offset,
                                    uint64_t bytes, std::string* why) {
  ExportedRegion* region = context_.exported(key);
  if (region == nullptr) {
    *why = "the memory behind the key is gone";
  } else if (offset > region->size || bytes > region->size - offset) {
    *why = MakeString("bytes ", offset, "+", bytes,
                      " are outside the exported ", region->size, " bytes");
    region = nullptr;
  }
  return region;
}

char* Pair::onPutPayload(const FrameHeader& header) {
  if (refusedPut_ != header.number) {
    std::string why;
    if (ExportedRegion* region = exportedRange(header.key, header.offset,
                                               header.payloadBytes, &why)) {
      incoming_.what = Incoming::What::kExport;
      incoming_.bound = header.key;
      return header.payloadBytes > 0 ? region->ptr + header.offset : control_;
    }
    refusedPut_ = header.number;
    refuseRequest(header.number, why);
  }
  return discard(header.payloadBytes);
}

void Pair::onPutEnd(const FrameHeader& header) {
  incoming_ = Incoming{};
  if (header.has(kLast) && refusedPut_ != header.number) {
    FrameHeader h = this->header(FrameType::kDone, kReply);
    h.number = header.number;
    sendControl(h);
  }
}

bool Pair::receivingExport(uint32_t key) const {
  return incoming_.what == Incoming::What::kExport && incoming_.bound == key;
}

void Pair::onGet(const FrameHeader& header) {
  std::string why;
  ExportedRegion* region =
      exportedRange(header.key, header.offset, header.bytes, &why);
  if (region == nullptr) {
    refuseRequest(header.number, why);
    return;
  }
  Operation& op = context_.newReply();
  region->inUse++;
  op.index = header.key;
  op.number = header.number;
  op.data = region->ptr + header.offset;
  op.bytes = header.bytes;
  sends_++;
  activate(op);
}

char* Pair::onGetPayload(const FrameHeader& header) {
  Operation* op = request(header.number);
  if (op == nullptr) {
    return nullptr;
  }
  if (op->kind != kGetRequest || header.offset > op->bytes ||
      header.payloadBytes > op->bytes - header.offset) {
    protocolError("more bytes than a get asked for");
    return nullptr;
  }
  incoming_.what = Incoming::What::kOperation;
  incoming_.op = op;
  return header.payloadBytes > 0 ? op->data + header.offset : control_;
}

void Pair::onGetEnd(const FrameHeader& header) {
  Operation& op = *incoming_.op;
  incoming_ = Incoming{};
  op.bytesDone.fetch_add(header.payloadBytes, std::memory_order_relaxed);
  if (header.has(kLast)) {
    endRequest(op);
    finishOperation(op, Operation::State::kDone);
  }
}

// A put or a get is finished, or was refused; or, on a pull link, a message.
void Pair::onDone(const FrameHeader& header, const char* payload) {
  if (!header.has(kReply)) {
    onPullDone(header);
    return;
  }
  Operation* op = request(header.number);
  if (op == nullptr) {
    return;
  }
  if (!header.has(kError)) {
    endRequest(*op);
    finishOperation(*op, Operation::State::kDone);
    return;
  }
  context_.failNew(internal::Cause::Kind::kIo, peer_,
                   MakeString("rank ", peer_, " refused a ",
                              op->kind == kPutRequest ? "put" : "get",
                              " of rank ", context_.rank(), ": ",
                              std::string(payload, header.payloadBytes)));
}

}  // namespace transport::base
GLOO_NAMESPACE_END
