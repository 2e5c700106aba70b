// How a context fails, and who is told.
#include <array>
#include <cstdio>
#include <new>

#include "gloo/common/logging.h"
#include "transport/base/context.h"
#include "transport/base/lifeline.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;
using internal::CausePtr;
using std::chrono::milliseconds;

CausePtr Context::failure() const {
  auto lock = this->lock();
  return cause_;
}

void Context::fail(CausePtr cause) {
  auto lock = this->lock();
  // (What another rank found it has looked into.)
  if (cause->kind == Cause::Kind::kTimeout && cause->foundBy == rank()) {
    failTimeout(
        lock, [] { return false; }, [&] { return *cause; });
  } else {
    // Whoever calls this has given its operation up, and may begin another one:
    // a dispute ends now, with what is known.
    const bool says = cause->kind == Cause::Kind::kMismatch;
    failLocked(dispute_ == nullptr || says ? std::move(cause) : dispute_);
  }
}

// Whoever is waited for may itself wait for a rank that is stopped, or slow:
// the ranks that do not answer are named, and those that have not come.
Cause Context::withSilent(ProgressDomain::Lock& lock, Cause cause) {
  const Missing missing =
      cause_ == nullptr ? missingRanks(lock, cause.slot) : Missing{};
  if (!missing.late.empty()) {
    cause.text += MakeString("; ", internal::listRanks(missing.late),
                             missing.late.size() == 1 ? " has" : " have",
                             " not begun this collective (tag ",
                             internal::tagOf(*cause.slot) & 0xffffffff, ")");
    cause.culprit = missing.late.front();
  }
  if (!missing.silent.empty()) {
    cause.text += MakeString("; no sign of life from ",
                             internal::listRanks(missing.silent),
                             " (stopped, or unreachable)");
    cause.culprit = missing.silent.front();
  }
  cause.text = cause.text.substr(0, Cause::kMaxText);
  return cause;
}

Cause Context::causeOf(Cause::Kind kind, int culprit,
                       const std::string& text) const {
  Cause cause;
  cause.kind = kind;
  cause.foundBy = rank();
  cause.culprit = culprit;
  cause.text = text.substr(0, Cause::kMaxText);
  return cause;
}

void Context::failNew(Cause::Kind kind, int culprit, const std::string& text) {
  failLocked(std::make_shared<Cause>(causeOf(kind, culprit, text)));
}

void Context::suspect(int peer, const std::string& why, bool gone) {
  if (joined_) {
    Lifelines::instance().suspect(
        worldNonce_, nonce_, causeOf(Cause::Kind::kPeerLost, peer, why), gone);
  } else {
    failNew(Cause::Kind::kPeerLost, peer, why);
  }
}

// The first cause wins. All peers are told; then nothing refers to the memory
// of an operation any more, and every operation ends. While another thread says
// goodbye only a wait of this rank whose time is up ends so, and because of
// that; the rest is over anyway.
void Context::failLocked(CausePtr cause) {
  const bool ownTimeout =
      cause->kind == Cause::Kind::kTimeout && cause->foundBy == rank();
  if (cause_ != nullptr || (closed_ && !ownTimeout)) {
    return;
  }
  // In a dispute the other rank ends its connections, and its text may come by
  // the lifelines: there is little time for that.
  if (dispute_ != nullptr && cause->kind != Cause::Kind::kMismatch) {
    if (!ownTimeout) {
      return;
    }
    cause = dispute_;
  }
  endWith(std::move(cause));
}

// Whatever it takes memory for can be done without.
void Context::endWith(CausePtr cause) noexcept {
  cause_ = closed_ ? internal::makeCause([this] { return closedCause(); })
                   : std::move(cause);
  GLOO_INFO("rank ", rank(), ": ", cause_->text);
  for (int peer = 0; peer < size(); peer++) {
    if (Pair* pair = pairAt(peer)) {
      pair->fail(*cause_);
    }
  }
  // That this rank uses what it has closed is nobody else's concern.
  const bool ownFault =
      cause_->kind == Cause::Kind::kClosed && cause_->culprit == rank();
  failPending();
  if (direct_ != nullptr) {
    direct_->fail();
  }
  changes_++;
  domain().changed();
  if (joined_ && !ownFault) {
    try {
      Lifelines::instance().flood(worldNonce_, nonce_, *cause_);
    } catch (const std::exception& e) {
      GLOO_WARN("rank ", rank(), ": not all ranks are told: ", e.what());
    }
  }
}

// A pair may have taken half of a message: nothing that follows would be right.
void Context::failAfter(const std::exception& e, const char* what,
                        int peer) noexcept {
  if (cause_ != nullptr) {
    return;
  }
  std::array<char, Cause::kMaxText> text;
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
    std::snprintf(text.data(), text.size(),
                  "rank %d was out of memory for %s rank %d", rank(), what,
                  peer);
  } else {
    std::snprintf(text.data(), text.size(), "rank %d: %s, at %s rank %d",
                  rank(), e.what(), what, peer);
  }
  spareCause_->foundBy = spareCause_->culprit = rank();
  spareCause_->text = text.data();
  endWith(std::move(spareCause_));
}

void Context::failPending() {
  while (OperationOwner* owner = busyOwners_.front()) {
    ended(*owner->anyPending(), Operation::State::kFailed);
  }
  while (Operation* op = pending_.front()) {
    ended(*op, Operation::State::kFailed);
  }
}

// A context that another thread closes is told the cause last.
void Context::throwFailure(std::string_view operation) const {
  internal::throwCause(cause_ != nullptr ? *cause_ : closedCause(),
                       MakeString("rank ", rank(), ": ", operation));
}

void Context::checkUsable(const char* what) const {
  auto lock = this->lock();
  throwIfFailed(what);
}

// What was awaited may come while the others are asked.
void Context::failTimeout(ProgressDomain::Lock& lock,
                          const ProgressDomain::Ready& over,
                          const std::function<Cause()>& make) {
  CausePtr cause =
      internal::makeCause([&] { return withSilent(lock, make()); });
  if (!over()) {
    failLocked(std::move(cause));
  }
}

// A wait of `owner` has reached its deadline.
void Context::timedOut(ProgressDomain::Lock& lock,
                       const ProgressDomain::Ready& over, OperationOwner& owner,
                       bool sends, std::chrono::nanoseconds elapsed) {
  const auto ms = std::chrono::duration_cast<milliseconds>(elapsed).count();
  const auto cause = [&] {
    const Operation* const op = owner.pending(sends).front();
    const std::string what =
        op != nullptr ? ": " + describe(*op)
                      : MakeString(" waited for a ", sends ? "send" : "receive",
                                   " that nobody started");
    return causeOf(
        Cause::Kind::kTimeout, op != nullptr ? op->peer : -1,
        MakeString("Timed out after ", ms, " ms: rank ", rank(), what));
  };
  failTimeout(lock, over, std::cref(cause));  // which takes no memory
}

Cause Context::closedCause() const {
  return causeOf(Cause::Kind::kClosed, rank(), closedText(rank()));
}

std::string Context::closedText(int rank) {
  return MakeString("rank ", rank, " closed this context");
}

void Context::onDeparture(int peer) {
  Pair& pair = *pairAt(peer);
  pair.dropWildcards();
  if (direct_ != nullptr) {
    direct_->depart(peer);
  }
  if (pair.leftWaiting()) {
    failDeparted(peer);
  } else {
    pair.answerBye();
  }
}

void Context::failLeft(int peer) {
  auto lock = this->lock();
  failDeparted(peer);
}

void Context::failDeparted(int peer, const std::string& why) {
  if (pairAt(peer)->closedHere()) {
    failNew(Cause::Kind::kClosed, rank(),
            MakeString("rank ", rank(), " closed its pair with rank ", peer));
    return;
  }
  failNew(Cause::Kind::kClosed, peer,
          MakeString("rank ", peer, " left (it closed its context) while rank ",
                     rank(), " had operations with it", why.empty() ? "" : ": ",
                     why));
}

}  // namespace transport::base
GLOO_NAMESPACE_END
