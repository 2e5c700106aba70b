// The operations of buffers: which of them are pending, and taking them back.
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

bool hasPeer(const PendingOperations& operations, int peer) {
  const Operation* op = operations.front();
  while (op != nullptr && op->peer != peer) {
    op = op->nextPending;
  }
  return op != nullptr;
}

}  // namespace

// Into the list of those that are pending: its owner's, or the context's.
void Context::list(Operation& op) {
  auto* const owner = static_cast<OperationOwner*>(op.user);
  if (owner == nullptr) {
    pending_.pushBack(&op);
    return;
  }
  if (!owner->busy()) {
    busyOwners_.pushBack(owner);
  }
  owner->pending(endsSendWait(op)).pushBack(&op);
}

void Context::unlist(Operation& op) {
  auto* const owner = static_cast<OperationOwner*>(op.user);
  if (owner == nullptr) {
    pending_.remove(&op);
    return;
  }
  owner->pending(endsSendWait(op)).remove(&op);
  if (!owner->busy()) {
    busyOwners_.remove(owner);
  }
}

void Context::cancelOwned(ProgressDomain::Lock& lock, OperationOwner& owner) {
  for (const bool sends : {true, false}) {
    for (Operation* op = owner.pending(sends).front();
         op != nullptr && cause_ == nullptr;) {
      Operation* following = op->nextPending;
      cancelOne(*op);  // ends at most this one
      op = following;
    }
  }
  drain(
      lock, [&] { return !owner.busy(); },
      [&] {
        return "destroying the buffer of a " + describe(*owner.anyPending());
      },
      [&](const Pair& pair) {
        return hasPeer(owner.pendingSends_, pair.peer()) ||
               hasPeer(owner.pendingRecvs_, pair.peer());
      });
}

void Context::disown(OperationOwner& owner) {
  while (Operation* op = owner.anyPending()) {
    unlist(*op);
    op->user = nullptr;
    op->device = -1;
    list(*op);
  }
}

bool Context::cancelFirst(ProgressDomain::Lock& lock, OperationOwner& owner,
                          bool sends) {
  Operation* op = owner.pending(sends).front();
  if (op == nullptr) {
    return false;
  }
  const uint64_t serial = op->serial;
  cancelOne(*op);
  waitForEnd(
      lock, [op, serial] { return !op->pending() || op->serial != serial; },
      [op, this] { return "abort of a " + describe(*op); },
      [op](const Pair& pair) { return op->peer == pair.peer(); });
  return true;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
