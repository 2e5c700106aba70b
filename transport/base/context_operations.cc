// Starting, waiting for and ending operations.
#include <algorithm>

#include "gloo/common/logging.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;
using std::chrono::milliseconds;

namespace {

// How long the end of a single operation may take before the context is given
// up.
constexpr milliseconds kCancelLimit{2000};

void reset(Operation& op) {
  op.bytesDone.store(0, std::memory_order_relaxed);
  op.check = 0;
  op.owner = nullptr;
  op.user = nullptr;
  op.region = nullptr;
  op.regionOffset = 0;
  op.bytesQueued = 0;
  op.parts = 0;
  op.remoteOffset = 0;
  op.device = -1;
  op.kind = kMessage;
  op.phase = kBacklog;
}

}  // namespace

Operation& Context::newOperation(OperationOwner& owner,
                                 const MemoryKind& kind) {
  Operation& op = *operations.take();
  reset(op);
  op.user = &owner;
  op.device = deviceOf(kind);
  return op;
}

// The target's side of a get: ends without telling anybody.
Operation& Context::newReply() {
  Operation& op = *operations.take();
  reset(op);
  op.kind = kGetReply;
  op.isSend = true;
  op.state.store(Operation::State::kPending, std::memory_order_relaxed);
  list(op);
  return op;
}

void Context::refuseOperation(int peer) const {
  throwIfFailed("starting an operation");
  GLOO_ENFORCE(peer >= 0 && peer < size() && peer != rank(), "rank ", rank(),
               ": operation with rank ", peer,
               ": it must be another rank of the group of ", size());
  GLOO_THROW_INVALID_OPERATION_EXCEPTION(
      "rank ", rank(), ": operation with rank ", peer,
      ", to which there is no connection: call connectFullMesh first");
}

// What a rank sent before it left can still be received.
void Context::checkPresent(Pair& pair, const uint64_t* receiveSlot) {
  if (!pair.departed() ||
      (receiveSlot != nullptr && pair.hasArrival(*receiveSlot))) {
    return;
  }
  failDeparted(pair.peer());
  throwFailure(MakeString("operation with rank ", pair.peer()));
}

// What it hears may be that the peer has left, or that the context has failed.
Pair& Context::pairToSendTo(int peer, uint64_t slot, size_t bytes) {
  Pair& pair = presentPair(peer, nullptr);
  if (!pair.wouldAnnounce(slot, bytes)) {
    return pair;
  }
  domain().visit();
  return presentPair(peer, nullptr);
}

void Context::checkSources(const std::vector<int>& sources, uint64_t slot) {
  GLOO_ENFORCE(!sources.empty(), "rank ", rank(),
               ": a receive from any of no ranks");
  throwIfFailed("starting a receive");
  bool present = false;
  for (const int source : sources) {
    Pair& pair = usablePair(source);
    present = present || !pair.departed() || pair.hasArrival(slot);
  }
  if (!present) {
    presentPair(sources.front(), &slot);
  }
}

void Context::start(Operation& op, Pair& pair) try {
  op.serial = ++serial_;
  op.state.store(Operation::State::kPending, std::memory_order_relaxed);
  list(op);
  if (!pair.linked()) {
    want(op.peer);
    if (cause_ != nullptr) {
      return;  // there is no link to be had: all operations have ended
    }
  }
  switch (op.kind) {
    case kMessage:
      if (op.isSend) {
        pair.countSend();
        pair.startSend(op);
      } else {
        pair.startRecv(op);
      }
      break;
    case kBoundWrite:
      pair.countSend();
      pair.startBoundWrite(op);
      break;
    default:
      if (op.isSend) {
        pair.countSend();
      }
      pair.startRequest(op);
  }
} catch (const std::exception& e) {
  failAfter(e, "an operation with", op.peer);
}

// A message that waits is taken at once; else the receive queues with all its
// sources. Where several wait, the sources take turns: one that sends without
// end does not keep the others from being heard.
void Context::startAny(Operation& op, const std::vector<int>& sources) try {
  op.peer = -1;
  op.serial = ++serial_;
  op.state.store(Operation::State::kPending, std::memory_order_relaxed);
  list(op);
  const auto after =
      std::upper_bound(sources.begin(), sources.end(), servedLast_);
  const auto turn = static_cast<size_t>(after - sources.begin());
  for (size_t i = 0; i < sources.size(); i++) {
    const int source = sources[(turn + i) % sources.size()];
    Pair& pair = *pairAt(source);
    if (pair.hasArrival(op.slot)) {
      servedLast_ = source;
      pair.meetFirst(op);
      return;
    }
  }
  RecvEntry* first = nullptr;
  for (const int source : sources) {
    Pair& pair = *pairAt(source);
    if (pair.departed()) {
      continue;
    }
    if (!pair.linked()) {
      want(source);
      if (cause_ != nullptr) {
        return;
      }
    }
    RecvEntry* entry = pair.queueFromAny(op);
    if (first == nullptr) {
      first = entry;
    } else {
      entry->sibling = first->sibling;
      first->sibling = entry;
    }
  }
  op.owner = first;
} catch (const std::exception& e) {
  failAfter(e, "an operation with", sources.front());
}

void Context::ended(Operation& op, Operation::State state) {
  unlist(op);
  op.region.reset();
  if (op.kind == kGetReply) {
    if (ExportedRegion* region = exported(op.index)) {
      region->inUse--;
    }
    op.state.store(state, std::memory_order_relaxed);
    operations.give(&op);
    return;
  }
  if (op.device >= 0 && !op.isSend && state == Operation::State::kDone &&
      !makeVisible(op.device, op.data)) {
    state = Operation::State::kFailed;
  }
  auto* owner = static_cast<OperationOwner*>(op.user);
  op.state.store(state, std::memory_order_release);
  if (owner != nullptr) {
    owner->onOperation(op);
  }
  domain().touched();  // another thread may wait for what this one started
}

namespace {

std::string sourcesOf(const Operation& op) {
  const auto* first = static_cast<const RecvEntry*>(op.owner);
  std::string ranks;
  if (first != nullptr && op.phase == kQueued) {
    const RecvEntry* entry = first;
    do {
      ranks += MakeString(ranks.empty() ? "" : ", ", entry->pair->peer());
      entry = entry->sibling;
    } while (entry != nullptr && entry != first);
  }
  return ranks;
}

}  // namespace

std::string Context::describe(const Operation& op) const {
  std::ostringstream out;
  const char* names[] = {op.isSend ? "send to" : "recv from", "bound write to",
                         "put to", "get from", "get by"};
  out << names[op.kind] << ' ';
  if (op.peer >= 0) {
    out << "rank " << op.peer;
  } else {
    out << "any of ranks " << sourcesOf(op);
  }
  out << ", slot 0x" << std::hex << op.slot << std::dec << ", " << op.bytesDone
      << " of " << op.bytes << " bytes";
  if (op.peer >= 0) {
    out << ", over " << linkNameLocked(op.peer);
  }
  return out.str();
}

std::string Context::linkNameLocked(int peer) const {
  const Pair* pair = peer >= 0 && peer < size() ? pairAt(peer) : nullptr;
  return pair != nullptr ? pair->linkName() : "no link";
}

std::string Context::linkName(int peer) const {
  auto lock = this->lock();
  return linkNameLocked(peer);
}

// ---- Channel; the rest of it is in context_channel.cc ----

void Context::postSend(Operation& op, int dst, uint64_t slot, const void* data,
                       size_t bytes, uint64_t check, bool more) {
  post(op, true, dst, slot, const_cast<void*>(data), bytes, check, more);
}

void Context::postRecv(Operation& op, int src, uint64_t slot, void* data,
                       size_t bytes, uint64_t check) {
  post(op, false, src, slot, data, bytes, check, false);
}

void Context::post(Operation& op, bool isSend, int peer, uint64_t slot,
                   void* data, size_t bytes, uint64_t check, bool more) {
  origin_.check("context");
  auto lock = this->lock();
  Pair& pair =
      isSend ? pairToSendTo(peer, slot, bytes) : presentPair(peer, &slot);
  const bool sent =
      isSend && pair.sendNow(slot, static_cast<char*>(data), bytes, check);
  reset(op);
  op.isSend = isSend;
  op.peer = peer;
  op.slot = slot;
  op.data = static_cast<char*>(data);
  op.bytes = bytes;
  op.check = check;
  op.more = more;
  if (sent) {
    op.bytesDone.store(bytes, std::memory_order_relaxed);
    op.state.store(Operation::State::kDone, std::memory_order_relaxed);
  } else {
    pair.prepare(op, lock);
    start(op, pair);
  }
}

void Context::cancel(Operation& op) {
  auto lock = this->lock();
  if (!op.pending()) {
    return;
  }
  cancelOne(op);
  waitForEnd(
      lock, [&op] { return !op.pending(); },
      [&op, this] { return "taking back a " + describe(op); },
      [&op](const Pair& pair) { return op.peer == pair.peer(); });
}

void Context::cancelOne(Operation& op) {
  int peer = op.peer;
  if (peer < 0) {
    peer = static_cast<RecvEntry*>(op.owner)->pair->peer();
  }
  pairAt(peer)->cancel(op);
}

// The context is given up when the peer does not answer: then everything ends,
// also where another thread is closing it, which may take longer than this.
void Context::waitForEnd(ProgressDomain::Lock& lock,
                         const ProgressDomain::Ready& over,
                         const Described& what, const Pairs& with) try {
  if (!waitWhileMoving(lock, over, kCancelLimit, with) && cause_ == nullptr) {
    endWith(std::make_shared<Cause>(
        causeOf(Cause::Kind::kIo, -1,
                MakeString("rank ", rank(), ": ", what(), ": no answer within ",
                           kCancelLimit.count(), " ms"))));
  }
} catch (const std::exception& e) {
  failAfter(e, "taking back what is of", rank());  // for a destructor, perhaps
}

void Context::drain(ProgressDomain::Lock& lock,
                    const ProgressDomain::Ready& over, const Described& what,
                    const Pairs& with) {
  const auto either = [&over, this] { return cause_ != nullptr || over(); };
  if (!either()) {
    waitForEnd(lock, either, what, with);
  }
}

}  // namespace transport::base

GLOO_NAMESPACE_END
