#include "transport/base/pair.h"

#include <algorithm>

#include "gloo/common/logging.h"
#include "transport/base/buffer.h"
#include "transport/base/context.h"
#include "transport/base/unbound_buffer.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

// A pair's address is its context's: the caller's rank completes it.
class ContextAddress final : public Address {
 public:
  ContextAddress(std::vector<char> bytes, std::string text)
      : bytes_(std::move(bytes)), text_(std::move(text)) {}
  std::string str() const override { return text_; }
  std::vector<char> bytes() const override { return bytes_; }

 private:
  const std::vector<char> bytes_;
  const std::string text_;
};

transport::UnboundBuffer& given(transport::UnboundBuffer* buffer) {
  GLOO_ENFORCE(buffer != nullptr, "the buffer of a message is null");
  return *buffer;
}

}  // namespace

Pair::Pair(Context& context, int peer)
    : context_(context),
      peer_(peer),
      caps_(context.capsOfLinks()),
      slots_(context.slotStates) {
  auto address = context.address();
  address_ = std::make_unique<ContextAddress>(std::move(address.bytes),
                                              std::move(address.text));
}

Pair::~Pair() {
  slots_.forEach([this](SlotState& state) {
    while (Arrival* arrival = state.arrivals.popFront()) {
      if (arrival->stash != nullptr) {
        context_.bounce.give(arrival->stash, arrival->bytes);
      }
    }
  });
  // The link was lost while the bytes of a message arrived that its receive had
  // already taken from its slot.
  if (incoming_.what == Incoming::What::kArrival &&
      incoming_.arrival->state == nullptr) {
    context_.bounce.give(incoming_.arrival->stash, incoming_.arrival->bytes);
  }
}

const Address& Pair::address() const { return *address_; }

void Pair::connect(const std::vector<char>& bytes) {
  context_.connectPair(peer_, bytes);
}

void Pair::close() { context_.closePair(peer_); }

void Pair::setSync(bool /*enable*/, bool busyPoll) {
  context_.checkUsable("setSync");
  context_.domain().setBusyPoll(busyPoll);
  context_.device().factory().setBusyPoll(busyPoll);
}

bool Pair::isConnected() {
  auto lock = context_.lock();
  return link_ != nullptr && !departed_ && !byeSent_ && !failed_;
}

std::string Pair::linkName() const {
  if (link_ == nullptr) {
    return "not connected";
  }
  const std::string kind = link_->kind();
  return kind.empty() ? context_.device().factory().kind() : kind;
}

void Pair::send(transport::UnboundBuffer* buffer, uint64_t tag, size_t offset,
                size_t nbytes) {
  given(buffer).send(peer_, tag, offset, nbytes);
}

void Pair::recv(transport::UnboundBuffer* buffer, uint64_t tag, size_t offset,
                size_t nbytes) {
  given(buffer).recv(peer_, tag, offset, nbytes);
}

void Pair::put(transport::UnboundBuffer* buffer, const RemoteKey& key,
               uint64_t slot, size_t offset, size_t roffset, size_t nbytes) {
  given(buffer).put(key, slot, offset, roffset, nbytes);
}

void Pair::get(transport::UnboundBuffer* buffer, const RemoteKey& key,
               uint64_t slot, size_t offset, size_t roffset, size_t nbytes) {
  given(buffer).get(key, slot, offset, roffset, nbytes);
}

void Pair::attach(std::unique_ptr<Link> link) {
  link_ = std::move(link);
  counted_ = {context_.device().tally(), linkName()};
  caps_ = link_->caps();
  credits_ = granted_ = caps_.creditBytes;  // agreed by the hellos
  if (caps_.needsRegions) {
    context_.limitEager(caps_.eagerBytes);
  }
  for (uint32_t i = 0; i < bounds_.size(); i++) {
    if (!caps_.needsRegions) {
      bounds_[i].region.reset();
    }
    if (bounds_[i].buffer != nullptr) {
      advertiseBound(i);
    }
  }
  slots_.forEach([this](SlotState& state) { advertiseUnblocked(state); });
  Fifo<Operation> waiting;
  std::swap(waiting, backlog_);
  while (Operation* op = failed_ ? nullptr : waiting.popFront()) {
    switch (op->kind) {
      case kMessage:
        startSend(*op);
        break;
      case kBoundWrite:
        startBoundWrite(*op);
        break;
      default:
        startRequest(*op);
    }
  }
  if (waits_ > 0 && !failed_) {
    link_->expect(true);
  }
}

FrameHeader Pair::header(FrameType type, uint8_t flags) {
  FrameHeader h;
  h.type = type;
  h.flags = flags;
  h.seen = seen_;
  h.credits = takeOwed();
  return h;
}

// Credits that a frame returns: whole quanta, as all that is owed.
uint32_t Pair::takeOwed() {
  const uint64_t most = UINT32_MAX - (caps_.creditQuantum - 1);
  const auto owed = static_cast<uint32_t>(std::min(owed_, most));
  owed_ -= owed;
  granted_ += owed;
  return owed;
}

// Throws nothing: the caller may be a destructor.
void Pair::sendControl(const FrameHeader& header, const char* payload) try {
  // Without a token the link copies what it cannot send at once.
  [[maybe_unused]] const bool left = link_->send(header, payload, nullptr);
} catch (const std::exception& e) {
  context_.failAfter(e, "a message to", peer_);
}

// Whole quanta: so what answers messages of one length returns the same each
// time, and heads that leave out what they need not say can say it.
uint64_t Pair::costOf(uint64_t bytes) const {
  const uint64_t most = caps_.creditQuantum - 1;
  return (std::max<uint64_t>(bytes, 1) + most) & ~most;
}

void Pair::returnCredits(uint64_t cost) {
  owed_ += cost;
  if (owed_ >= caps_.creditBytes / 2 && link_ != nullptr && !byeSent_) {
    context_.counts().creditsSent++;
    sendControl(header(FrameType::kCredit));
  }
}

// `waits` tells the link whether somebody needs this peer to send something.
void Pair::addWaits(int n) {
  const bool before = waits_ > 0;
  waits_ += static_cast<uint64_t>(static_cast<int64_t>(n));
  if (link_ != nullptr && before != (waits_ > 0)) {
    link_->expect(waits_ > 0);
  }
}

void Pair::finishOperation(Operation& op, Operation::State state) {
  if (failed_) {
    return;  // it has ended with all others
  }
  if (op.isSend) {
    sends_--;
    answerBye();
  }
  context_.ended(op, state);
}

void Pair::protocolError(const std::string& what) {
  context_.failNew(
      internal::Cause::Kind::kIo, peer_,
      MakeString("rank ", peer_, " sent something impossible: ", what));
}

char* Pair::onPayload(const FrameHeader& header) try {
  if (failed_) {
    return nullptr;
  }
  takeNews(header.credits, header.seen);
  if (failed_) {
    return nullptr;
  }
  incoming_ = Incoming{};
  if (header.type != FrameType::kData) {
    incoming_.what = Incoming::What::kControl;
    return control_;
  }
  char* const place = context_.disputing() ? nullptr : placeFor(header);
  return place == nullptr && !failed_ && context_.disputing()
             ? discard(header.payloadBytes)
             : place;
} catch (const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
  return nullptr;
}

char* Pair::placeFor(const FrameHeader& header) {
  // Over a link that can write, only eager messages bring their bytes along.
  const bool placed = header.has(kBound) || header.has(kPut) ||
                      (header.has(kReply) && caps_.remoteRead) ||
                      (header.has(kDirect) && header.payloadBytes > 0);
  if (caps_.remoteWrite && placed) {
    protocolError("bytes in a frame that it could have written");
    return nullptr;
  }
  if (header.has(kBound)) {
    return onBoundPayload(header);
  }
  if (header.has(kPut)) {
    return onPutPayload(header);
  }
  if (header.has(kReply)) {
    return onGetPayload(header);
  }
  return header.has(kDirect) ? onDirectPayload(header) : onEagerPayload(header);
}

char* Pair::discard(size_t bytes) {
  incoming_.what = Incoming::What::kDiscard;
  if (discard_.size() < bytes) {
    discard_.resize(bytes);
  }
  return discard_.data();
}

void Pair::onFrame(const FrameHeader& header, const char* payload) try {
  if (failed_) {
    return;
  }
  // What has got its place before the dispute is taken from there.
  const bool placed = header.payloadBytes > 0 && incoming_.placed();
  if (context_.disputing() && !placed) {
    onFrameInDispute(header, payload);
    return;
  }
  if (header.payloadBytes == 0) {
    takeNews(header.credits, header.seen);
    incoming_ = Incoming{};
    if (failed_ ||
        (header.type == FrameType::kData && placeFor(header) == nullptr)) {
      return;
    }
  }
  switch (header.type) {
    case FrameType::kData:
      onDataEnd(header);
      break;
    case FrameType::kAnnounce:
      onAnnounce(header);
      break;
    case FrameType::kAdvert:
      onAdvert(header);
      break;
    case FrameType::kDone:
      onDone(header, payload);
      break;
    case FrameType::kCancel:
      onCancel(header);
      break;
    case FrameType::kCredit:
      onAwaited(header);
      break;
    case FrameType::kAbort:
      onAbort(header, payload);
      break;
    case FrameType::kBye:
      departed_ = true;
      context_.onDeparture(peer_);
      break;
    case FrameType::kBufferAdvert:
      onBoundAdvert(header);
      break;
    case FrameType::kGet:
      onGet(header);
      break;
    case FrameType::kDispute:
      onDispute(header, payload);
      break;
  }
} catch (const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
}

void Pair::onDataEnd(const FrameHeader& header) {
  if (header.has(kBound)) {
    onBoundEnd(header);
  } else if (header.has(kPut)) {
    onPutEnd(header);
  } else if (header.has(kReply)) {
    onGetEnd(header);
  } else if (header.has(kDirect)) {
    onDirectEnd(header);
  } else {
    onEagerEnd(header);
  }
}

void Pair::onComplete(void* token) try {
  if (failed_) {
    return;
  }
  moved_++;
  taken_++;
  auto& op = *static_cast<Operation*>(token);
  inLink_ -= weightOf(op);
  partDone(op);
  pump();
} catch (const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
