// Taking back receives and sends that have not begun. Each is asked of the
// peer, which may answer that it is too late.
#include <vector>

#include "gloo/common/string.h"
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

void Pair::cancel(Operation& op) {
  if (op.kind == kMessage && op.isSend) {
    cancelSend(op);
  } else if (op.kind == kMessage) {
    cancelRecv(op);
  } else if (op.phase == kBacklog) {
    backlog_.remove(&op);
    finishOperation(op, Operation::State::kCancelled);
  } else if (op.kind == kBoundWrite && op.phase == kAnnounced) {
    cancelBound(op);
  }
}

void Pair::onCancel(const FrameHeader& header) {
  if (header.has(kBound)) {
    onCancelOfBound(header);
  } else if (header.has(kReply)) {
    onCancelReply(header);
  } else if (header.has(kSend)) {
    onCancelOfAnnounce(header);
  } else {
    onCancelOfAdvert(header);
  }
}

void Pair::cancelRecv(Operation& op) {
  auto* entry = static_cast<RecvEntry*>(op.owner);
  if (op.phase != kQueued || entry == nullptr || entry->cancelling ||
      entry->cancelWanted) {
    return;  // its bytes are on their way, or it is being taken back
  }
  // A place in the queue that the peer knows, or one before.
  bool known = false;
  if (entry->state->advertised > 0) {
    for (const RecvEntry* e = entry; e != nullptr && !known; e = e->next) {
      known = e->advertised;
    }
  }
  if (!known || link_ == nullptr) {
    op.owner = nullptr;
    dropAll(entry);
    finishOperation(op, Operation::State::kCancelled);
    return;
  }
  SlotState& state = *entry->state;
  if (state.cancelling > 0) {
    // Whether that one counts is known when it is answered.
    entry->cancelWanted = true;
    return;
  }
  uint64_t position = 0;
  for (const RecvEntry* e = state.recvs.front(); e != entry; e = e->next) {
    position++;
  }
  if (!entry->advertised) {
    entry->index = takeIndex(entry);
  }
  entry->cancelling = true;
  state.cancelling++;
  FrameHeader h = header(FrameType::kCancel);
  h.slot = op.slot;
  h.index = entry->index;
  h.number = position;
  sendControl(h);
}

void Pair::dropAll(RecvEntry* entry) {
  RecvEntry* sibling = entry->sibling;
  while (sibling != nullptr && sibling != entry) {
    RecvEntry* following = sibling->sibling;
    sibling->pair->dropEntry(sibling);
    sibling = following;
  }
  entry->pair->dropEntry(entry);
}

void Pair::dropWildcards() {
  std::vector<RecvEntry*> wildcards;
  slots_.forEach([&](SlotState& state) {
    for (RecvEntry* e = state.recvs.front(); e != nullptr; e = e->next) {
      if (e->wildcard() && e->sibling != e) {
        wildcards.push_back(e);
      }
    }
  });
  for (RecvEntry* entry : wildcards) {
    RecvEntry* before = entry;
    while (before->sibling != entry) {
      before = before->sibling;
    }
    before->sibling = entry->sibling;
    entry->op->owner = before;
    dropEntry(entry);
  }
}

void Pair::onCancelReply(const FrameHeader& header) {
  if (header.has(kSend)) {
    onSendCancelled(header);
    return;
  }
  SlotState* state = slots_.find(header.slot);
  if (state == nullptr || state->cancelling == 0 ||
      header.index >= advertised_.size()) {
    protocolError("an answer to a cancel that nobody asked for");
    return;
  }
  state->cancelling--;
  RecvEntry* entry = advertised_[header.index];
  if (entry == nullptr) {  // its message came first
    freeIndices_.push_back(header.index);
  } else {
    entry->cancelling = false;
    if (!entry->advertised) {
      freeIndex(*entry);
    }
    if (header.bytes > 0) {  // else too late: its message is on its way
      Operation* op = entry->op;
      op->owner = nullptr;
      dropEntry(entry);
      finishOperation(*op, Operation::State::kCancelled);
    }
  }
  if (failed_) {
    return;
  }
  cancelNext(header.slot);
  if (SlotState* left = slots_.find(header.slot)) {
    advertiseUnblocked(*left);
    slots_.forgetIfIdle(*left);
  }
}

// Of those that waited for an answer to another one.
void Pair::cancelNext(uint64_t slot) {
  for (;;) {
    SlotState* state = slots_.find(slot);
    if (state == nullptr || state->cancelling > 0) {
      return;
    }
    RecvEntry* entry = state->recvs.front();
    while (entry != nullptr && !entry->cancelWanted) {
      entry = entry->next;
    }
    if (entry == nullptr) {
      return;
    }
    entry->cancelWanted = false;
    cancelRecv(*entry->op);
  }
}

// The peer takes back an announce. Too late if it has been answered.
void Pair::onCancelOfAnnounce(const FrameHeader& header) {
  SlotState* state = slots_.find(header.slot);
  Arrival* arrival = state != nullptr ? state->arrivals.front() : nullptr;
  while (arrival != nullptr &&
         (!arrival->announced || arrival->number != header.number)) {
    arrival = arrival->next;
  }
  if (arrival != nullptr) {
    state->arrivals.remove(arrival);
    context_.arrivals.give(arrival);
    slots_.forgetIfIdle(*state);
  }
  FrameHeader h = this->header(FrameType::kCancel, kSend | kReply);
  h.slot = header.slot;
  h.number = header.number;
  h.bytes = arrival != nullptr ? 1 : 0;
  sendControl(h);
}

// The peer takes back the receive at position `number`. Too late if a message
// of ours was on its way to it.
void Pair::onCancelOfAdvert(const FrameHeader& header) {
  SlotState& state = slots_.at(header.slot);
  const bool granted = header.number >= state.unseen;
  if (granted) {
    const uint64_t target = state.sent + (header.number - state.unseen);
    for (StoredAdvert* a = state.adverts.front(); a != nullptr;) {
      StoredAdvert* following = a->next;
      if (a->target == target) {
        state.adverts.remove(a);
        context_.adverts.give(a);
      } else if (a->target > target) {
        a->target--;
      }
      a = following;
    }
  }
  FrameHeader h = this->header(FrameType::kCancel, kReply);
  h.slot = header.slot;
  h.index = header.index;
  h.bytes = granted ? 1 : 0;
  sendControl(h);
  slots_.forgetIfIdle(state);
}

void Pair::cancelSend(Operation& op) {
  if (op.phase == kBacklog) {
    backlog_.remove(&op);
    finishOperation(op, Operation::State::kCancelled);
  } else if (op.phase == kAnnounced) {
    FrameHeader h = header(FrameType::kCancel, kSend);
    h.slot = op.slot;
    h.number = op.number;
    sendControl(h);
  }
}

void Pair::onSendCancelled(const FrameHeader& header) {
  Operation* op = announcedOperation(header.slot, header.number);
  if (op == nullptr || header.bytes == 0) {
    return;  // it was served meanwhile
  }
  SlotState& state = slots_.at(header.slot);
  state.announced.remove(op);
  addWaits(-1);
  if (op->owner != nullptr) {
    static_cast<Intro*>(op->owner)->op = nullptr;
    op->owner = nullptr;
  }
  finishOperation(*op, Operation::State::kCancelled);
  slots_.forgetIfIdle(state);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
