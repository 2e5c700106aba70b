// Short messages, which most programs wait for most: both sides do what
// pair_send.cc and pair_recv.cc do, in one step.
#include "transport/base/context.h"
#include "transport/base/copy.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// What the pair remembers of the message is written down behind it: the peer
// need not wait for that.
bool Pair::sendNow(uint64_t slot, const char* from, size_t bytes,
                   uint64_t check) {
  if (link_ == nullptr || bytes > caps_.smallBytes ||
      costOf(bytes) > credits_) {
    return false;
  }
  SlotState& state = slots_.at(slot);
  if (state.hasAdvert()) {
    return false;
  }
  context_.intros.prepare();  // nothing may throw once the message has left
  const ShortMessage message{
      slot,  check,     introduced_ + 1, static_cast<uint32_t>(bytes),
      seen_, takeOwed()};
  if (!link_->sendNow(message, from)) {
    owed_ += message.credits;
    granted_ -= message.credits;
    return false;
  }
  credits_ -= costOf(bytes);
  addIntro(state);
  context_.counts().eagerSent++;
  return true;
}

// Whatever is not as usual goes the longer way, which finds out what it is. (A
// pair that has failed may have entries whose operations are gone.)
bool Pair::onMessage(const ShortMessage& message, const char* payload) try {
  SlotState* const state =
      failed_ || context_.disputing() ? nullptr : slots_.find(message.slot);
  const RecvEntry* const entry =
      state != nullptr ? state->recvs.front() : nullptr;
  const uint64_t cost = costOf(message.bytes);
  if (entry == nullptr || entry->op->device >= 0 ||
      entry->op->check != message.check || message.bytes > entry->op->bytes ||
      cost > granted_ || message.number != seen_ + 1) {
    return LinkHandler::onMessage(message, payload);
  }
  takeNews(message.credits, message.seen);
  if (failed_ || (message.check != 0 &&
                  !context_.hear(peer_, message.slot, message.check, true))) {
    return !failed_;  // in a dispute: the link reads on
  }
  granted_ -= cost;
  seen_ = message.number;
  Operation& op = *takeFront(*state);
  if (failed_) {
    return false;
  }
  copyBytes(op.data, payload, message.bytes);
  op.bytesDone.store(message.bytes, std::memory_order_relaxed);
  finishOperation(op, Operation::State::kDone);
  returnCredits(cost);
  return true;
} catch (const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
  return false;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
