#include "transport/base/unbound_buffer.h"

#include <algorithm>
#include <optional>

#include "gloo/common/logging.h"
#include "gloo/internal/require_timeout.h"
#include "transport/base/region_key.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

UnboundBuffer::UnboundBuffer(Context& context, void* ptr, size_t size)
    : transport::UnboundBuffer(ptr, size),
      context_(context),
      alive_(context.alive()),
      kind_(memoryKindOfBuffer(ptr, size)),
      kept_(context.keepAs(kind_, ptr, size)) {}

UnboundBuffer::~UnboundBuffer() {
  if (origin_.inherited() || alive_.expired()) {
    return;
  }
  auto lock = context_.lock();
  const bool pending = sends_.pending + recvs_.pending > 0;
  if (pending) {
    context_.cancelOwned(lock, *this);
  }
  for (const uint32_t id : exported_) {
    if (id != 0) {
      context_.withdrawRegion(lock, id);
    }
  }
  if (pending) {
    context_.disown(*this);
  }
  for (Side* side : {&sends_, &recvs_}) {
    while (Operation* op = side->ended.popFront()) {
      context_.operations.give(op);
    }
  }
}

bool UnboundBuffer::waitRecv(int* rank, std::chrono::milliseconds timeout) {
  return wait(recvs_, rank, timeout, nullptr);
}

bool UnboundBuffer::waitSend(int* rank, std::chrono::milliseconds timeout) {
  return wait(sends_, rank, timeout, nullptr);
}

bool UnboundBuffer::waitRecv(std::chrono::steady_clock::time_point deadline) {
  return wait(recvs_, nullptr, kUnsetTimeout, &deadline);
}

bool UnboundBuffer::waitSend(std::chrono::steady_clock::time_point deadline) {
  return wait(sends_, nullptr, kUnsetTimeout, &deadline);
}

bool UnboundBuffer::wait(Side& side, int* rank,
                         std::chrono::milliseconds timeout,
                         const Deadline::Clock::time_point* until) {
  origin_.check("unbound buffer");
  if (timeout != kUnsetTimeout) {
    internal::requireTimeout(timeout);
  }
  auto lock = context_.lock();
  const auto ready = [&side, this] {
    return !side.ended.empty() || side.endsWait() || context_.failedLocked();
  };
  // An abort that was called before this operation: the peer has its memory.
  // (What is taken back may be the one that another wait returns for.)
  const auto nothing = [&side, this] {
    return side.ended.empty() && !context_.failedLocked();
  };
  const bool sends = &side == &sends_;
  std::optional<Deadline> deadline;
  Deadline::Clock::time_point started;
  do {
    if (context_.domain().finds(lock, ready) ||
        context_.domain().glance(ready)) {
      continue;
    }
    if (!deadline) {
      started = Deadline::Clock::now();
      deadline = until != nullptr ? Deadline(*until)
                                  : Deadline::after(timeout == kUnsetTimeout
                                                        ? context_.getTimeout()
                                                        : timeout);
    }
    if (!context_.domain().wait(lock, ready, *deadline)) {
      context_.timedOut(lock, ready, *this, sends,
                        Deadline::Clock::now() - started);
    }
  } while (side.endsWait() && nothing() &&
           context_.cancelFirst(lock, *this, sends) && nothing());
  if (Operation* op = side.ended.front()) {
    if (op->state.load(std::memory_order_relaxed) !=
        Operation::State::kFailed) {
      side.ended.remove(op);
      const bool done =
          op->state.load(std::memory_order_relaxed) == Operation::State::kDone;
      if (rank != nullptr) {
        *rank = op->peer;
      }
      context_.operations.give(op);
      side.aborted = side.aborted && done;
      return done;
    }
  }
  if (side.endsWait() && !context_.failedLocked()) {
    side.aborted = false;
    return false;
  }
  context_.throwFailure(
      side.ended.empty()
          ? MakeString("waiting for a ", sends ? "send" : "receive")
          : context_.describe(*side.ended.front()));
}

void UnboundBuffer::abortWaitRecv() { abortWait(recvs_, false); }

void UnboundBuffer::abortWaitSend() { abortWait(sends_, true); }

void UnboundBuffer::abortWait(Side& side, bool sends) {
  origin_.check("unbound buffer");
  auto lock = context_.lock();
  side.aborted = true;
  side.takingBack++;
  try {
    context_.cancelFirst(lock, *this, sends);
  } catch (...) {
    // The peer may still write: who waits does so for that.
    side.takingBack--;
    side.aborted = false;
    context_.domain().changed();
    throw;
  }
  side.takingBack--;
  context_.domain().changed();
}

size_t UnboundBuffer::checkedBytes(const char* what, size_t offset,
                                   size_t nbytes) const {
  origin_.check("unbound buffer");
  if (nbytes == kUnspecifiedByteCount && offset <= size) {
    return size - offset;
  }
  if (offset > size || nbytes > size - offset) [[unlikely]] {
    refuseBytes(what, offset, nbytes);
  }
  return nbytes;
}

void UnboundBuffer::refuseBytes(const char* what, size_t offset,
                                size_t nbytes) const {
  GLOO_ENFORCE(offset <= size && nbytes <= size - offset, what, " of bytes ",
               offset, "+", nbytes, " of a buffer of ", size, " bytes");
}

Operation& UnboundBuffer::newOperation(bool isSend, uint8_t kind, size_t offset,
                                       size_t bytes) {
  Operation& op = context_.newOperation(*this, kind_);
  op.kind = kind;
  op.isSend = isSend;
  op.data = static_cast<char*>(ptr) + offset;
  op.bytes = bytes;
  op.within = {static_cast<char*>(ptr), size};
  (endsSendWait(op) ? sends_ : recvs_).pending++;
  return op;
}

void UnboundBuffer::send(int dstRank, uint64_t slot, size_t offset,
                         size_t nbytes) {
  const size_t bytes = checkedBytes("send", offset, nbytes);
  auto lock = context_.lock();
  Pair& pair = context_.pairToSendTo(dstRank, slot, bytes);
  context_.operations.prepare();
  const bool sent =
      deviceOf(kind_) < 0 &&
      pair.sendNow(slot, static_cast<char*>(ptr) + offset, bytes, 0);
  Operation& op = newOperation(true, kMessage, offset, bytes);
  op.peer = dstRank;
  op.slot = slot;
  if (sent) {
    op.bytesDone.store(bytes, std::memory_order_relaxed);
    op.state.store(Operation::State::kDone, std::memory_order_relaxed);
    onOperation(op);
    context_.domain().touched();
  } else {
    startMessage(op, pair, lock);
  }
}

void UnboundBuffer::startMessage(Operation& op, Pair& pair,
                                 ProgressDomain::Lock& lock) {
  try {
    pair.prepare(op, lock);
  } catch (...) {
    (op.isSend ? sends_ : recvs_).pending--;
    context_.operations.give(&op);
    throw;
  }
  context_.start(op, pair);
}

void UnboundBuffer::recv(int srcRank, uint64_t slot, size_t offset,
                         size_t nbytes) {
  const size_t bytes = checkedBytes("recv", offset, nbytes);
  auto lock = context_.lock();
  Pair& pair = context_.presentPair(srcRank, &slot);
  Operation& op = newOperation(false, kMessage, offset, bytes);
  op.peer = srcRank;
  op.slot = slot;
  startMessage(op, pair, lock);
}

void UnboundBuffer::recv(std::vector<int> srcRanks, uint64_t slot,
                         size_t offset, size_t nbytes) {
  const size_t bytes = checkedBytes("recv", offset, nbytes);
  // A caller may list all ranks, and some more than once (PyTorch does both):
  // no message comes from this rank, and a source counts once.
  std::sort(srcRanks.begin(), srcRanks.end());
  srcRanks.erase(std::unique(srcRanks.begin(), srcRanks.end()), srcRanks.end());
  if (srcRanks.size() > 1) {
    std::erase(srcRanks, context_.rank());
  }
  if (srcRanks.size() == 1) {
    recv(srcRanks[0], slot, offset, bytes);
    return;
  }
  auto lock = context_.lock();
  context_.checkSources(srcRanks, slot);
  Operation& op = newOperation(false, kMessage, offset, bytes);
  op.slot = slot;
  context_.startAny(op, srcRanks);
}

std::unique_ptr<RemoteKey> UnboundBuffer::getRemoteKey(
    RemoteAccess access) const {
  origin_.check("unbound buffer");
  const size_t at = static_cast<size_t>(access) - 1;
  GLOO_ENFORCE(at < exported_.size(), "getRemoteKey for an unknown use, ",
               static_cast<int>(access));
  const std::lock_guard<std::mutex> turn(exporting_);
  auto lock = context_.lock();
  uint32_t& id = exported_[at];
  if (id == 0) {
    id = context_.exportRegion(lock, ptr, size, access);
  }
  const ExportedRegion& exported = *context_.exported(id);
  return std::make_unique<RegionKey>(context_.rank(), size, exported.access,
                                     context_.nonce(), id,
                                     exported.region.get());
}

void UnboundBuffer::put(const RemoteKey& key, uint64_t slot, size_t offset,
                        size_t roffset, size_t nbytes) {
  request(key, true, slot, offset, roffset, nbytes);
}

void UnboundBuffer::get(const RemoteKey& key, uint64_t slot, size_t offset,
                        size_t roffset, size_t nbytes) {
  request(key, false, slot, offset, roffset, nbytes);
}

void UnboundBuffer::request(const RemoteKey& anyKey, bool isPut, uint64_t slot,
                            size_t offset, size_t roffset, size_t nbytes) {
  const char* what = isPut ? "put" : "get";
  origin_.check("unbound buffer");
  const auto* key = dynamic_cast<const RegionKey*>(&anyKey);
  GLOO_ENFORCE(key != nullptr, what, " with a key of another library");
  GLOO_ENFORCE(
      allows(key->access, isPut ? RemoteAccess::kWrite : RemoteAccess::kRead),
      what, " with a key of rank ", key->rank,
      " whose memory was exported for ", isPut ? "get" : "put", " only");
  GLOO_ENFORCE(offset <= size && nbytes <= size - offset, what, " of bytes ",
               offset, "+", nbytes, " of a buffer of ", size, " bytes");
  GLOO_ENFORCE(roffset <= key->size && nbytes <= key->size - roffset, what,
               " of remote bytes ", roffset, "+", nbytes,
               " of an exported region of ", key->size, " bytes on rank ",
               key->rank);
  auto lock = context_.lock();
  if (key->rank == context_.rank()) {
    context_.copyLocal(*key, isPut, static_cast<char*>(ptr) + offset,
                       deviceOf(kind_), roffset, nbytes);
    Operation& op =
        newOperation(isPut, isPut ? kPutRequest : kGetRequest, offset, nbytes);
    op.peer = key->rank;
    op.state.store(Operation::State::kDone, std::memory_order_relaxed);
    onOperation(op);
    context_.domain().touched();
    return;
  }
  Pair& pair = context_.presentPair(key->rank, nullptr);
  // Regions are numbered by each context from 1.
  const uint64_t peer = context_.nonceOf(key->rank);
  GLOO_ENFORCE(peer == 0 || peer == key->nonce, what, " with a key of rank ",
               key->rank, " that is of another context, or of a process that ",
               "was there before");
  Operation& op =
      newOperation(isPut, isPut ? kPutRequest : kGetRequest, offset, nbytes);
  op.peer = key->rank;
  op.slot = slot;
  op.index = key->id;
  op.remoteOffset = roffset;
  op.remoteAddress = key->address;
  op.remoteKey = key->key;
  context_.start(op, pair);
}

void UnboundBuffer::onOperation(Operation& op) {
  Side& side = endsSendWait(op) ? sends_ : recvs_;
  side.pending--;
  side.ended.pushBack(&op);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
