#include "algorithms/verify/order.h"

#include <algorithm>
#include <utility>

#include "algorithms/verify/verify.h"
#include "gloo/common/string.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {

// visit(before, start, action): the action needs the start, or the end, of
// another.
template <typename Visit>
void Order::forEachCondition(const Visit& visit) const {
  for (uint32_t i = 0; i < program_.actions.size(); i++) {
    const Action& a = program_.actions[i];
    if (a.after >= 0) {
      visit(static_cast<uint32_t>(a.after), true, i);
    }
    for (uint32_t w = 0; w < a.waitCount; w++) {
      visit(program_.waits[a.firstWait + w], false, i);
    }
  }
}

Order::Order(const Program& program, bool onePort)
    : program_(program),
      onePort_(onePort),
      states_(program.actions.size()),
      firstWaiter_(program.actions.size() + 2, 0) {
  forEachCondition([this](uint32_t before, bool, uint32_t action) {
    firstWaiter_[before + 2]++;
    states_[action].unmet++;
  });
  for (size_t i = 2; i < firstWaiter_.size(); i++) {
    firstWaiter_[i] += firstWaiter_[i - 1];
  }
  waiters_.resize(firstWaiter_.back());
  // One place further on each, which is where the next one's begin.
  forEachCondition([this](uint32_t before, bool start, uint32_t action) {
    waiters_[firstWaiter_[before + 1]++] = 2 * action + (start ? 1 : 0);
  });
  for (uint32_t i = 0; onePort && i < program.actions.size(); i++) {
    if (isMessage(program.actions[i])) {
      ports_[portOf(program.actions[i])].messages.push_back(i);
    }
  }
}

void Order::begin(std::vector<uint32_t>& ready) { enter(ready); }

void Order::started(uint32_t action, std::vector<uint32_t>& ready) {
  meet(
      action, true, [](State&) {}, ready);
}

void Order::done(uint32_t action, int depth, std::vector<uint32_t>& ready) {
  states_[action].unmet = kDone;
  meet(
      action, false,
      [depth](State& waiter) { waiter.depth = std::max(waiter.depth, depth); },
      ready);
  if (onePort_ && isMessage(program_.actions[action])) {
    Port& port = ports_[portOf(program_.actions[action])];
    port.busy = false;
    if (port.next < port.messages.size()) {
      consider(port.messages[port.next], ready);
    }
  }
  while (!atEnd() && states_[head_].unmet == kDone) {
    head_++;
  }
  enter(ready);
}

// tell(waiter): of each that waits for it.
template <typename Tell>
void Order::meet(uint32_t action, bool start, const Tell& tell,
                 std::vector<uint32_t>& ready) {
  for (uint32_t k = firstWaiter_[action]; k < firstWaiter_[action + 1]; k++) {
    const uint32_t waiter = waiters_[k];
    if ((waiter % 2 == 1) != start) {
      continue;
    }
    State& state = states_[waiter / 2];
    tell(state);
    if (--state.unmet == 0) {
      consider(waiter / 2, ready);
    }
  }
}

void Order::consider(uint32_t action, std::vector<uint32_t>& ready) {
  if (action >= entered_ || states_[action].unmet > 0) {
    return;
  }
  if (onePort_ && isMessage(program_.actions[action])) {
    Port& port = ports_[portOf(program_.actions[action])];
    if (port.busy || port.messages[port.next] != action) {
      return;
    }
    port.busy = true;
    port.next++;
  }
  ready.push_back(action);
}

void Order::enter(std::vector<uint32_t>& ready) {
  const size_t end = std::min(program_.actions.size(),
                              head_ + static_cast<size_t>(program_.window));
  while (entered_ < end) {
    entered_++;
    consider(static_cast<uint32_t>(entered_ - 1), ready);
  }
}

// Whoever is no peer is found where the message is posted.
std::string findDisorder(const Program& program, int ranks) {
  std::vector<int32_t> last(2 * static_cast<size_t>(ranks), -1);
  for (size_t i = 0; i < program.actions.size(); i++) {
    const Action& a = program.actions[i];
    int32_t before = -1;
    if (Order::isMessage(a) && a.peer >= 0 && a.peer < ranks) {
      const size_t way = 2 * static_cast<size_t>(a.peer) + Order::portOf(a);
      before = std::exchange(last[way], static_cast<int32_t>(i));
    }
    if (a.after != before) {
      return MakeString("action ", i, " follows ", a.after, " instead of ",
                        before);
    }
  }
  return {};
}

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
