#include "algorithms/executor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "algorithms/reduce_locally.h"
#include "gloo/common/error.h"
#include "gloo/internal/copy.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

using internal::Cause;

namespace {

// After local work on this many bytes the transport gets a turn; longer work is
// done in pieces of the second.
constexpr size_t kPollBytes = 32 * 1024;
constexpr size_t kPieceBytes = 128 * 1024;
// A run of no more messages than these, of no more bytes each way, and whose
// peers answer at once is over before its deadline could be asked for.
constexpr size_t kBriefActions = 16;
constexpr size_t kBriefBytes = 64 * 1024;
// From here on a message is worth a look at whether another one follows.
constexpr size_t kLongBytes = 16 * 1024;

}  // namespace

void refuseFailed(internal::Channel& channel, std::string_view collective,
                  uint32_t tag) {
  if (const internal::CausePtr cause = channel.failure()) {
    internal::throwCause(*cause, MakeString("rank ", channel.rank(), ": ",
                                            collective, " tag ", tag));
  }
}

Executor::Executor(const Program& program)
    : program_(program),
      window_(static_cast<size_t>(program.window)),
      mask_(std::bit_ceil(std::min(window_, program.actions.size() + 1)) - 1),
      brief_(program.actions.size() <= kBriefActions &&
             std::max(program.sendBytes, program.recvBytes) <= kBriefBytes),
      postsFirst_(postsFirst(program)),
      states_(program.actions.size(), kWaiting),
      operations_(std::make_unique<Operation[]>(mask_ + 1)),
      ready_([this] { return anyEnded(); }) {
  if (program.window > kMaxWindow) {
    throw InvalidOperationException("executor: window too large");
  }
}

void Executor::run(const Run& run) {
  run_ = &run;
  head_ = 0;
  inFlight_ = 0;
  deadline_ = run.deadline;
  if (!deadline_ && (!brief_ || run.own != nullptr || run.reduce.isForeign())) {
    deadline_ = Deadline::after(run.left);
  }
  std::fill(states_.begin(), states_.end(), kWaiting);
  const size_t end = program_.actions.size();
  if (!postsFirst_ || run.own != nullptr) {
    refuseFailed();
  }
  try {
    reduceOwn();
    while (head_ < end) {
      if (!sweep() && head_ < end) {
        wait();
      }
    }
  } catch (const std::exception& e) {  // what takes memory: after abandon()
    const Stuck at = stuck();
    const internal::CausePtr cause = run.channel->failure();
    abandon(at, e.what());
    if (cause != nullptr) {
      internal::throwCause(*cause, describe(at));
    }
    throw;
  } catch (...) {
    abandon(stuck(), "a reduce function threw");
    throw;
  }
}

void Executor::reduceOwn() {
  if (run_->own != nullptr) {
    reduceLocally(run_->reduce, *run_->own,
                  run_->memory[static_cast<size_t>(Memory::kOutput)], [this] {
                    lookAtTime();
                    refuseFailed();
                  });
  }
}

// After work of this rank's own. (That the context has failed is seen by what
// is in flight.)
void Executor::lookAtTime() {
  if (deadline_ && deadline_->expired()) {
    const int rank = run_->channel->rank();
    fail(Cause::Kind::kTimeout, rank,
         MakeString("Timed out after ", run_->timeout.count(), " ms: rank ",
                    rank, " is still at work on its own part"));
  }
}

// Until something has ended that was not at the last sweep.
void Executor::wait() {
  if (run_->channel->glance(ready_)) {
    return;
  }
  if (!deadline_) {
    deadline_ = Deadline::after(run_->left);
  }
  if (!run_->channel->waitUntil(ready_, *deadline_)) {
    throwTimeout();
  }
}

// Starts, in their order, what need not wait any more. True if another sweep
// would start more, before anything else has ended.
bool Executor::sweep() {
  const size_t end = std::min(program_.actions.size(), head_ + window_);
  const bool receivesWait = sweepReceives(end);
  bool done = false;
  bool sent = false;
  bool again = false;
  for (size_t i = head_; i < end; i++) {
    const Action& action = program_.actions[i];
    if (states_[i] != kWaiting || action.kind == ActionKind::kRecv ||
        !ready(action)) {
      continue;
    }
    const bool isSend = action.kind == ActionKind::kSend;
    const bool takesLong = !isSend && action.bytes >= kPollBytes;
    if (takesLong && sent) {
      again = true;
      break;  // receives that need not wait any more go first
    }
    start(i, action, isSend && sendFollows(i, end));
    const bool ended = !isSend || finish(i, action);
    done |= ended;
    sent |= isSend && ended;
    if (takesLong) {
      again = true;
      break;  // likewise
    }
  }
  const size_t before = head_;
  while (head_ < program_.actions.size() && states_[head_] == kDone) {
    head_++;
  }
  return again || (done && receivesWait) ||
         (head_ > before && end < program_.actions.size());
}

// What has ended, and receives that can start: before anything is sent or
// reduced, so that peers learn where their messages go as early as can be. True
// if there are others, which have to wait.
bool Executor::sweepReceives(size_t end) {
  bool waiting = false;
  for (size_t i = head_; i < end; i++) {
    const Action& action = program_.actions[i];
    if (states_[i] == kWaiting && action.kind == ActionKind::kRecv) {
      if (!ready(action)) {
        waiting = true;
        continue;
      }
      start(i, action, false);
    }
    if (states_[i] == kStarted) {
      finish(i, action);
    }
  }
  return waiting;
}

bool Executor::ready(const Action& action, int64_t starting) const {
  if (action.after >= 0 && action.after != starting &&
      states_[static_cast<size_t>(action.after)] == kWaiting) {
    return false;
  }
  const uint32_t* waits = program_.waits.data() + action.firstWait;
  for (uint32_t i = 0; i < action.waitCount; i++) {
    if (states_[waits[i]] != kDone) {
      return false;
    }
  }
  return true;
}

// Whether what this sweep starts after that send is another one to its peer.
bool Executor::sendFollows(size_t index, size_t end) const {
  const Action& send = program_.actions[index];
  if (send.bytes < kLongBytes) {
    return false;
  }
  for (size_t i = index + 1; i < end; i++) {
    const Action& next = program_.actions[i];
    if (states_[i] == kWaiting && next.kind != ActionKind::kRecv &&
        ready(next, static_cast<int64_t>(index))) {
      return next.kind == ActionKind::kSend && next.peer == send.peer;
    }
  }
  return false;
}

void Executor::start(size_t index, const Action& action, bool more) {
  Operation& op = operation(index);
  if (action.kind == ActionKind::kSend) {
    op.within = within(action.source);
    run_->channel->postSend(op, action.peer, run_->slot, at(action.source),
                            action.bytes, checkOf(action), more);
  } else if (action.kind == ActionKind::kRecv) {
    op.within = within(action.target);
    run_->channel->postRecv(op, action.peer, run_->slot, at(action.target),
                            action.bytes, checkOf(action));
  } else {
    perform(action);
    states_[index] = kDone;
    return;
  }
  inFlight_ |= uint64_t{1} << (index & mask_);
  states_[index] = kStarted;
}

uint64_t Executor::checkOf(const Action& action) const {
  if (!internal::isByPart(run_->check)) {
    return run_->check;
  }
  return internal::withPart(
      run_->check,
      {run_->channel->rank(), action.peer, action.kind == ActionKind::kSend},
      run_->details);
}

char* Executor::inputBlock(size_t offset) const {
  const size_t bytes = run_->inputBlockBytes;
  const auto* block =
      static_cast<const char*>(run_->inputBlocks[offset / bytes]);
  return const_cast<char*>(block) + offset % bytes;  // only read
}

void Executor::perform(const Action& action) {
  if (action.kind == ActionKind::kCopy) {
    // The same where a caller's input block is its output.
    if (at(action.target) != at(action.source)) {
      internal::copyMemory(at(action.target), at(action.source), action.bytes);
    }
  } else {
    reduce(action);
  }
  if (action.bytes >= kPollBytes) {
    run_->channel->poll();
    lookAtTime();
  }
}

void Executor::reduce(const Action& action) {
  const Reducer& reducer = run_->reduce;
  char* const target = at(action.target);
  const char* left = at(action.source);
  const char* right = at(action.staged);
  if (!action.ownFirst) {
    std::swap(left, right);
  }
  const size_t piece = std::max<size_t>(1, kPieceBytes / reducer.elementSize) *
                       reducer.elementSize;
  for (size_t done = 0; done < action.bytes; done += piece) {
    if (done > 0) {
      run_->channel->poll();
      lookAtTime();
    }
    reducer(target + done, left + done, right + done,
            std::min(piece, action.bytes - done));
    if (reducer.isForeign()) {
      lookAtTime();
    }
  }
}

bool Executor::finish(size_t index, const Action& action) {
  Operation& op = operation(index);
  const Operation::State state = op.state.load(std::memory_order_acquire);
  if (state == Operation::State::kPending) {
    return false;
  }
  inFlight_ &= ~(uint64_t{1} << (index & mask_));
  if (state != Operation::State::kDone) {
    throw IoException("the operation was cancelled");
  }
  if (action.kind == ActionKind::kRecv && op.bytesDone != action.bytes) {
    throwShort(action, op);
  }
  states_[index] = kDone;
  return true;
}

bool Executor::anyEnded() const {
  for (uint64_t rest = inFlight_; rest != 0; rest &= rest - 1) {
    if (!operations_[static_cast<size_t>(std::countr_zero(rest))].pending()) {
      return true;
    }
  }
  return false;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
