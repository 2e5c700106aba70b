// What the collectives need besides operations: agreeing on what they are, and
// waiting.
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;
using std::chrono::milliseconds;

namespace {

// How long a collective waits for a message before it tells the sender what it
// waits for: long enough that ranks which are merely late seldom cost a frame,
// short enough that a disagreement is known within a second.
constexpr milliseconds kPatience{250};

}  // namespace

uint64_t Context::begin(uint64_t slot, uint64_t check,
                        const internal::CheckDetailsPtr& details,
                        internal::Repeats* repeats) {
  origin_.check("context");
  if (size() == 1) {
    return check;
  }
  auto lock = this->lock();
  const uint64_t tag = internal::tagOf(slot);
  std::optional<Agreement::Conflict> conflict;
  const uint64_t word = agreement().begin(tag, check, &conflict, details);
  if (conflict) {
    failMismatch(tag, conflict->one, conflict->other);
  }
  if (repeats != nullptr) {
    repeats->begin(tag, word);
    // Its word may have come before it was known to be repeated.
    if (repeats->areOf(tag) && agreement_.isAhead(tag)) {
      repeats->mark(true);
    }
  }
  return word;
}

bool Context::hear(int peer, uint64_t slot, uint64_t word, bool isMessage) {
  const uint64_t tag = internal::tagOf(slot);
  const auto conflict = agreement().heard(peer, tag, word, isMessage);
  if (conflict) {
    failMismatch(tag, conflict->one, conflict->other);
  } else if (direct_ != nullptr) {
    markRepeats(tag);
  }
  // What was only counted may contradict, too.
  return !conflict && cause_ == nullptr && dispute_ == nullptr;
}

Agreement& Context::agreement() {
  if (direct_ != nullptr) {
    countRepeats();
  }
  return agreement_;
}

void Context::tellRepeats() {
  auto lock = this->lock();
  countRepeats();
}

void Context::countRepeats() {
  for (const auto& lane : direct_->lanes()) {
    internal::Repeats& repeats = lane->repeats;
    const uint64_t times = repeats.untaken();
    if (times > 0) {
      const uint64_t tag = repeats.tag();
      std::optional<Agreement::Conflict> conflict;
      agreement_.beginAgain(tag, repeats.word(), times, &conflict);
      repeats.take(times);  // not where there was no memory
      if (conflict) {
        failMismatch(tag, conflict->one, conflict->other);
      }
    }
    if (repeats.marked() && !agreement_.isAhead(repeats.tag())) {
      repeats.mark(false);
    }
  }
}

// A word of that tag has come. Who counts in a lane that was marked before, and
// is still, sees that.
void Context::markRepeats(uint64_t tag) {
  bool isNew = false;
  for (const auto& lane : direct_->lanes()) {
    internal::Repeats& repeats = lane->repeats;
    if (repeats.areOf(tag) && !repeats.marked() && agreement_.isAhead(tag)) {
      repeats.mark(true);
      isNew = true;
    }
  }
  if (isNew) {
    direct_->awaitPublished();
    countRepeats();
  }
}

bool Context::waitUntil(const std::function<bool()>& ready, Deadline deadline) {
  auto lock = this->lock();
  bool done = domain().finds(lock, ready);
  if (!done && cause_ == nullptr) {
    const auto either = [&ready, this] { return cause_ != nullptr || ready(); };
    const Deadline patience = Deadline::after(kPatience);
    if (deadline.at() <= patience.at()) {
      domain().wait(lock, either, deadline);
    } else if (!domain().wait(lock, either, patience)) {
      tellAwaited();
      domain().wait(lock, either, deadline);
    }
    done = ready();
  }
  // What is complete is complete, whatever has happened since.
  if (cause_ != nullptr && !done) {
    throwIfFailed("waiting");
  }
  return done;
}

bool Context::glance(const std::function<bool()>& ready) {
  auto lock = this->lock();
  return domain().finds(lock, ready) ||
         (cause_ == nullptr && domain().glance(ready));
}

void Context::tellAwaited() {
  for (Operation* op = pending_.front(); op != nullptr; op = op->nextPending) {
    if (op->kind == kMessage && !op->isSend && op->peer >= 0 &&
        op->phase == kQueued && op->check != 0) {
      pairAt(op->peer)->tellAwaited(*op);
    }
  }
}

void Context::poll() {
  auto lock = this->lock();
  domain().visit();
}

}  // namespace transport::base

internal::Channel::~Channel() = default;

std::unique_ptr<internal::KeptMemory> internal::Channel::keep(void*, size_t,
                                                              bool) {
  return nullptr;
}

internal::Channel& internal::Channel::of(transport::Context& context) {
  auto* channel = dynamic_cast<Channel*>(&context);
  if (channel == nullptr) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION(
        "this transport context has no channel for collectives");
  }
  return *channel;
}

GLOO_NAMESPACE_END
