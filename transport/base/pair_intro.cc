// Introductions: what a pair remembers of the messages that its peer has not
// seen yet (pair.h says what for).
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// What every message says besides itself: what its sender grants and has seen.
void Pair::takeNews(uint32_t credits, uint32_t seen) {
  heard_ = true;
  moved_++;
  taken_ += credits > 0 ? 1 : 0;
  credits_ += credits;
  pruneSeen(seen);
}

void Pair::introduce(Operation& op, SlotState& state, bool announced) {
  Intro& intro = addIntro(state);
  intro.op = announced ? &op : nullptr;
  op.number = introduced_;
  op.owner = announced ? &intro : nullptr;
}

// Numbers a message.
Intro& Pair::addIntro(SlotState& state) {
  Intro* intro = context_.intros.take();
  *intro = Intro{};
  intro->state = &state;
  intro->number = ++introduced_;
  unseen_.pushBack(intro);
  (state.unseenBack != nullptr ? state.unseenBack->nextOnSlot
                               : state.unseenFront) = intro;
  state.unseenBack = intro;
  state.unseen++;
  state.sent++;
  return *intro;
}

// The peer has processed introductions up to `seen`.
void Pair::pruneSeen(uint32_t seen) {
  if (static_cast<int32_t>(introduced_ - seen) < 0) {
    protocolError("it has seen messages that were never sent");
    return;
  }
  for (;;) {
    Intro* intro = unseen_.front();
    if (intro == nullptr || static_cast<int32_t>(seen - intro->number) < 0) {
      return;
    }
    unseen_.popFront();
    taken_++;
    SlotState& state = *intro->state;
    state.unseenFront = intro->nextOnSlot;
    if (state.unseenFront == nullptr) {
      state.unseenBack = nullptr;
    }
    state.unseen--;
    if (intro->op != nullptr) {
      intro->op->owner = nullptr;
    }
    context_.intros.give(intro);
    slots_.forgetIfIdle(state);
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
