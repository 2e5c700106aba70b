// How a run of an executor fails, and what it says.
#include <algorithm>
#include <bit>
#include <utility>

#include "algorithms/executor.h"
#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

using internal::Cause;

// Both throw what the catch in run() replaces by the context's cause.
void Executor::throwTimeout() {
  const int culprit = program_.actions[firstOpen()].peer;
  fail(Cause::Kind::kTimeout, culprit,
       MakeString("Timed out after ", run_->timeout.count(), " ms: rank ",
                  run_->channel->rank(), " waited for rank ", culprit));
}

void Executor::throwShort(const Action& action, const Operation& op) {
  fail(Cause::Kind::kMismatch, action.peer,
       MakeString("rank ", action.peer, " sent a message of ", op.bytesDone,
                  " bytes where rank ", run_->channel->rank(), " expects ",
                  action.bytes,
                  ": do all ranks pass the same count and element type?"));
}

void Executor::fail(Cause::Kind kind, int culprit, std::string text) {
  const auto cause = std::make_shared<const Cause>(
      Cause{kind, run_->channel->rank(), culprit, std::move(text), run_->slot});
  run_->channel->fail(cause);
  throw IoException(cause->text);
}

// Ends what is in flight; the context is unusable from here on, because peers
// may be in the middle of messages of this run.
void Executor::abandon(const Stuck& at, const char* why) noexcept {
  algorithms::abandon(*run_->channel,
                      [&] { return describe(at) + ": " + why; });
  for (uint64_t rest = inFlight_; rest != 0; rest &= rest - 1) {
    Operation& op = operations_[static_cast<size_t>(std::countr_zero(rest))];
    try {
      if (op.pending()) {
        run_->channel->cancel(op);
      }
    } catch (...) {
      // cancel() has ended the operation all the same.
    }
  }
  inFlight_ = 0;
}

Executor::Stuck Executor::stuck() const {
  if (states_.empty()) {
    return {};  // one rank
  }
  const size_t i = firstOpen();
  return {i, states_[i] == kStarted ? operation(i).bytesDone.load() : 0};
}

size_t Executor::firstOpen() const {
  const size_t size = program_.actions.size();
  const size_t end = std::min(size, head_ + window_);
  size_t found = std::min(head_, size - 1);
  // A receive says best whom this rank waits for.
  for (const ActionKind kind : {ActionKind::kSend, ActionKind::kRecv}) {
    for (size_t i = end; i-- > head_;) {
      if (states_[i] == kStarted && program_.actions[i].kind == kind) {
        found = i;
      }
    }
  }
  return found;
}

std::string Executor::describe(const Stuck& at) const {
  const std::string who =
      MakeString("rank ", run_->channel->rank(), ": ", run_->collective,
                 " tag ", run_->tag, " (", run_->algorithm, "): ");
  if (states_.empty()) {
    return who + "its own part";
  }
  const Action& action = program_.actions[at.index];
  const char* verb = action.kind == ActionKind::kSend   ? "send to rank "
                     : action.kind == ActionKind::kRecv ? "recv from rank "
                                                        : "local step";
  return MakeString(
      who, verb, action.peer >= 0 ? std::to_string(action.peer) : std::string(),
      ", ", at.bytesDone, " of ", action.bytes, " bytes, step ", head_ + 1,
      " of ", program_.actions.size());
}

}  // namespace algorithms
GLOO_NAMESPACE_END
