#include "transport/base/buffer.h"

#include "gloo/common/logging.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

Buffer::Buffer(Context& context, Pair& pair, Side side, int slot, void* ptr,
               size_t size)
    : transport::Buffer(slot, ptr, size),
      context_(context),
      alive_(context.alive()),
      pair_(pair),
      side_(side),
      kind_(memoryKindOfBuffer(ptr, size)),
      kept_(side == Side::kSend ? context.keepAs(kind_, ptr, size) : nullptr) {
  auto lock = context_.lock();
  if (side == Side::kSend) {
    remote_ = &pair_.useRemoteBound(slot);
  } else {
    index_ = pair_.addBound(lock, *this, slot, ptr, size, kind_);
  }
}

// Afterwards neither this process nor the peer touches the memory for us.
Buffer::~Buffer() {
  if (origin_.inherited() || alive_.expired()) {
    return;
  }
  const auto name = [this] {
    return MakeString("destroying a bound buffer for rank ", pair_.peer());
  };
  auto lock = context_.lock();
  if (side_ == Side::kRecv) {
    pair_.withdrawBound(index_);
    context_.drain(
        lock, [this] { return pair_.boundWithdrawn(index_); }, name,
        [this](const Pair& pair) { return &pair == &pair_; });
    pair_.removeBound(index_);
  } else {
    if (pending_ > 0) {  // no buffer of the peer's may ever come for them
      context_.cancelOwned(lock, *this);
      context_.disown(*this);
    }
    pair_.releaseRemoteBound(slot_);
  }
}

void Buffer::send(size_t offset, size_t length, size_t roffset) {
  origin_.check("buffer");
  if (side_ != Side::kSend || offset > size_ || length > size_ - offset) {
    checkSend(offset, length);
  }
  auto lock = context_.lock();
  char* const from = static_cast<char*>(ptr_) + offset;
  const bool fits =
      roffset <= remote_->bytes && length <= remote_->bytes - roffset;
  if (fits && !debug_ && pending_ == 0 && deviceOf(kind_) < 0 &&
      !context_.failedLocked() &&
      pair_.writeBoundNow(*remote_, from, length, roffset)) {
    sent_++;
    context_.domain().touched();
    return;
  }
  start(from, length, roffset);
}

// Throws: apart from send(), which is short so.
[[gnu::noinline]] void Buffer::checkSend(size_t offset, size_t length) const {
  GLOO_ENFORCE(side_ == Side::kSend, "send on a receive buffer, slot ", slot_);
  GLOO_ENFORCE(offset <= size_ && length <= size_ - offset, "send of bytes ",
               offset, "+", length, " of a buffer of ", size_, " bytes, slot ",
               slot_);
}

// What is long, or has to wait. REQUIRES the domain's lock.
[[gnu::noinline]] void Buffer::start(char* from, size_t length,
                                     size_t roffset) {
  GLOO_ENFORCE(
      !remote_->known ||
          (roffset <= remote_->bytes && length <= remote_->bytes - roffset),
      "send of ", length, " bytes to offset ", roffset,
      " of the peer's buffer of ", remote_->bytes, " bytes, slot ", slot_);
  if (debug_) {
    GLOO_DEBUG("rank ", context_.rank(), ": slot ", slot_, ": send of ", length,
               " bytes to rank ", pair_.peer());
  }
  context_.presentPair(pair_.peer(), nullptr);
  Operation& op = context_.newOperation(*this, kind_);
  op.kind = kBoundWrite;
  op.isSend = true;
  op.peer = pair_.peer();
  op.data = from;
  op.bytes = length;
  op.within = {static_cast<char*>(ptr_), size_};
  op.slot = static_cast<uint64_t>(static_cast<int64_t>(slot_));
  op.remoteOffset = roffset;
  op.number = ++started_;
  pending_++;
  context_.start(op, pair_);
}

void Buffer::onOperation(Operation& op) {
  pending_--;
  if (op.number != accounted_ + 1) {
    early_.pushBack(&op);
    return;
  }
  account(op);
  for (Operation* next = early_.front(); next != nullptr;) {
    if (next->number == accounted_ + 1) {
      early_.remove(next);
      account(*next);
      next = early_.front();
    } else {
      next = next->next;
    }
  }
}

// Behind one that has failed, none is told of as sent: a wait would take it for
// that one.
void Buffer::account(Operation& op) {
  accounted_++;
  unsent_ |=
      op.state.load(std::memory_order_relaxed) != Operation::State::kDone;
  sent_ += unsent_ ? 0 : 1;
  context_.operations.give(&op);
}

void Buffer::wait(uint64_t& done, const char* what) {
  origin_.check("buffer");
  auto lock = context_.lock();
  const auto ready = [this, &done] {
    return done > 0 || context_.failedLocked() ||
           (pair_.departed() && (side_ == Side::kRecv || pending_ == 0));
  };
  if (!context_.domain().finds(lock, ready) &&
      !context_.domain().glance(ready) &&
      !context_.domain().wait(lock, ready,
                              Deadline::after(context_.getTimeout()))) {
    context_.failTimeout(lock, ready, [this, what] {
      return context_.causeOf(
          internal::Cause::Kind::kTimeout, pair_.peer(),
          MakeString("Timed out after ", context_.getTimeout().count(),
                     " ms waiting for a bound buffer's ", what, " rank ",
                     pair_.peer(), ", slot ", slot_));
    });
  }
  if (done == 0) {
    if (!context_.failedLocked()) {
      context_.failDeparted(pair_.peer());
    }
    context_.throwFailure(MakeString("bound buffer's ", what, " rank ",
                                     pair_.peer(), ", slot ", slot_));
  }
  done--;
}

void Buffer::waitRecv() { wait(arrived_, "receive from"); }

void Buffer::waitSend() { wait(sent_, "send to"); }

std::unique_ptr<transport::Buffer> Pair::createSendBuffer(int slot, void* ptr,
                                                          size_t size) {
  context_.checkUsable("createSendBuffer");
  return std::make_unique<Buffer>(context_, *this, Buffer::Side::kSend, slot,
                                  ptr, size);
}

std::unique_ptr<transport::Buffer> Pair::createRecvBuffer(int slot, void* ptr,
                                                          size_t size) {
  context_.checkUsable("createRecvBuffer");
  return std::make_unique<Buffer>(context_, *this, Buffer::Side::kRecv, slot,
                                  ptr, size);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
