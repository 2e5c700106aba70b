#include "algorithms/simulate/window.h"

#include <algorithm>
#include <bit>

#include "algorithms/executor.h"
#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {
namespace {

uint64_t windowOf(const ActionStream& stream) {
  if (stream.window() > Executor::kMaxWindow) {
    throw InvalidOperationException("simulator: window too large");
  }
  return static_cast<uint64_t>(stream.window());
}

Range rangeOf(Place place, size_t bytes) {
  const uint64_t begin =
      (static_cast<uint64_t>(place.memory) << 60) + place.offset;
  return {begin, begin + bytes};
}

bool isMessage(const Action& action) {
  return action.kind == ActionKind::kSend || action.kind == ActionKind::kRecv;
}

}  // namespace

Window::Window(const Schedule& schedule, const Layouts& layouts,
               const ExpandOptions& options)
    : stream_(Steps(schedule), layouts, options),
      window_(windowOf(stream_)),
      mask_(std::bit_ceil(window_) - 1),
      actions_(mask_ + 1),
      waits_(mask_ + 1),
      writes_(mask_ + 1),
      reads_(mask_ + 1),
      stages_(mask_ + 1),
      next_(mask_ + 1) {}

uint64_t Window::inOrder(uint64_t slots) const {
  const uint64_t first = head_ & mask_;
  if (first == 0) {
    return slots;
  }
  const uint64_t all = ~uint64_t{0} >> (63 - mask_);
  return (slots >> first) | ((slots << (mask_ + 1 - first)) & all);
}

std::optional<uint64_t> Window::next() {
  fill();
  const uint64_t can = inOrder(ready_ | arrived_);
  if (can == 0) {
    return std::nullopt;
  }
  return head_ + static_cast<uint64_t>(std::countr_zero(can));
}

void Window::start(uint64_t number) {
  waiting_ &= ~bitOf(number);
  ready_ &= ~bitOf(number);
  if (action(number).kind == ActionKind::kRecv) {
    posted_ |= bitOf(number);
  }
  const size_t slot = number & mask_;
  if (const size_t next = next_[slot]; next != slot) {
    held_ &= ~bitOf(next);
    ready_ |= waits_[next] == 0 ? bitOf(next) : 0;
  }
}

void Window::arrived(uint64_t number) {
  posted_ &= ~bitOf(number);
  arrived_ |= bitOf(number);
}

void Window::finish(uint64_t number) {
  open_ &= ~bitOf(number);
  arrived_ &= ~bitOf(number);
  for (uint64_t rest = waiting_ & ~ready_; rest != 0; rest &= rest - 1) {
    uint64_t& waits = waits_[static_cast<size_t>(std::countr_zero(rest))];
    waits &= open_;
    ready_ |= waits == 0 ? rest & -rest & ~held_ : 0;
  }
  while (head_ < tail_ && (open_ & bitOf(head_)) == 0) {
    head_++;
  }
}

std::optional<uint64_t> Window::postedFrom(int peer) const {
  for (uint64_t rest = inOrder(posted_); rest != 0; rest &= rest - 1) {
    const uint64_t number =
        head_ + static_cast<uint64_t>(std::countr_zero(rest));
    if (action(number).peer == peer) {
      return number;
    }
  }
  return std::nullopt;
}

void Window::fill() {
  for (Action action; !ended_ && tail_ - head_ < window_;) {
    ended_ = !stream_.next(action);
    if (!ended_) {
      takeIn(action);
    }
  }
}

void Window::takeIn(const Action& action) {
  const size_t slot = tail_ & mask_;
  const uint64_t bit = bitOf(tail_);
  actions_[slot] = action;
  next_[slot] = static_cast<uint8_t>(slot);
  held_ &= ~bit;
  waits_[slot] = conflictsOf(action, slot);
  if (isMessage(action)) {
    chain(action);
  }
  open_ |= bit;
  waiting_ |= bit;
  ready_ |= waits_[slot] == 0 ? bit & ~held_ : 0;
  tail_++;
}

// With actions that are not done.
uint64_t Window::conflictsOf(const Action& action, size_t slot) {
  const bool reads = action.kind != ActionKind::kRecv;
  const bool writes = action.kind != ActionKind::kSend;
  const Range none;
  const Range read = reads ? rangeOf(action.source, action.bytes) : none;
  const Range write = writes ? rangeOf(action.target, action.bytes) : none;
  const Range staged = action.kind == ActionKind::kReduce
                           ? rangeOf(action.staged, action.bytes)
                           : none;
  uint64_t conflicts = 0;
  for (uint64_t rest = open_; rest != 0; rest &= rest - 1) {
    const auto s = static_cast<size_t>(std::countr_zero(rest));
    const bool meets =
        (reads && (writes_[s].meets(read) || writes_[s].meets(staged))) ||
        (writes && (write.meets(writes_[s]) || write.meets(reads_[s]) ||
                    write.meets(stages_[s])));
    conflicts |= meets ? rest & -rest : 0;
  }
  writes_[slot] = write;
  reads_[slot] = read;
  stages_[slot] = staged;
  return conflicts;
}

// Only the last one can be followed: it follows the others itself.
void Window::chain(const Action& action) {
  for (uint64_t i = tail_; i-- > head_;) {
    const Action& before = actions_[i & mask_];
    if (before.kind == action.kind && before.peer == action.peer) {
      next_[i & mask_] = static_cast<uint8_t>(tail_ & mask_);
      held_ |= (waiting_ & bitOf(i)) != 0 ? bitOf(tail_) : 0;
      return;
    }
  }
}

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
