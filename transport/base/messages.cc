#include "transport/base/messages.h"

#include <utility>

GLOO_NAMESPACE_BEGIN
namespace transport::base {

SlotState* SlotTable::search(uint64_t slot) const {
  SlotState* state = buckets_[bucketOf(slot)];
  while (state != nullptr && state->slot != slot) {
    state = state->nextInBucket;
  }
  return state;
}

SlotState& SlotTable::make(uint64_t slot) {
  if (count_ >= buckets_.size() * 2) {
    grow();
  }
  SlotState* state = pool_.take();
  *state = SlotState{};
  state->slot = slot;
  SlotState*& head = buckets_[bucketOf(slot)];
  state->nextInBucket = head;
  head = state;
  count_++;
  return *state;
}

void SlotTable::forgetIfIdle(SlotState& state) {
  if (state.kept || !state.idle()) {
    return;
  }
  state.kept = true;
  SlotState* const before =
      std::exchange(secondLast_, std::exchange(last_, &state));
  if (before == nullptr) {
    return;
  }
  before->kept = false;
  if (before->idle()) {
    forget(*before);
  }
}

void SlotTable::forget(SlotState& state) {
  SlotState** link = &buckets_[bucketOf(state.slot)];
  while (*link != &state) {
    link = &(*link)->nextInBucket;
  }
  *link = state.nextInBucket;
  count_--;
  pool_.give(&state);
}

void SlotTable::grow() {
  std::vector<SlotState*> old(buckets_.size() * 4);
  old.swap(buckets_);
  for (SlotState* head : old) {
    while (head != nullptr) {
      SlotState* following = head->nextInBucket;
      SlotState*& bucket = buckets_[bucketOf(head->slot)];
      head->nextInBucket = bucket;
      bucket = head;
      head = following;
    }
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
