// Put and get.
#include <algorithm>

#include "gloo/common/logging.h"
#include "transport/base/buffer.h"
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

uint64_t Pair::addRequest(Operation& op) {
  if (freeRequests_.empty()) {
    // First: if anything throws, nothing has changed. And endRequest() needs no
    // memory.
    freeRequests_.reserve(std::max(requests_.capacity(), requests_.size() + 1));
    requests_.push_back(nullptr);
    freeRequests_.push_back(static_cast<uint32_t>(requests_.size() - 1));
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
  if (op.device >= 0) {
    context_.failNew(internal::Cause::Kind::kIo, context_.rank(),
                     MakeString("rank ", context_.rank(), ": a get from rank ",
                                peer_, " into memory of CUDA device ",
                                op.device, ", over a link that cannot read"));
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

char* Pair::onPutPayload(const FrameHeader& header) {
  if (refusedPut_ != header.number) {
    std::string why;
    if (ExportedRegion* region =
            context_.exportedFor(RemoteAccess::kWrite, header.key,
                                 header.offset, header.payloadBytes, &why)) {
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
  if (byeSent_) {
    return;  // the peer is about to hear that no answer comes
  }
  // Also over a link that reads: perhaps only this end of it may.
  std::string why;
  ExportedRegion* region = context_.exportedFor(
      RemoteAccess::kRead, header.key, header.offset, header.bytes, &why);
  if (region != nullptr && region->device >= 0) {
    why = "its RDMA device does not read the memory of CUDA devices of others";
    region = nullptr;
  }
  if (region == nullptr) {
    refuseRequest(header.number, why);
    return;
  }
  Operation& op = context_.newReply();
  region->inUse++;
  op.peer = peer_;
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
  if (!header.has(kLast)) {
    return;
  }
  if (op.bytesDone != op.bytes) {
    protocolError("the end of a get before all of its bytes");
    return;
  }
  endRequest(op);
  finishOperation(op, Operation::State::kDone);
}

// All parts of a put have arrived.
void Pair::onPutDone(Operation& op) {
  if (op.kind != kPutRequest ||
      (op.phase != kAwaitDone && op.phase != kQueuedOut)) {
    protocolError("an answer to a put before its end");
    return;
  }
  if (op.parts > 0) {
    op.phase = kAnswered;
    return;
  }
  endRequest(op);
  finishOperation(op, Operation::State::kDone);
}

// A put is finished, or it or a get was refused; or, on a pull link, a message
// is finished.
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
    onPutDone(*op);
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
