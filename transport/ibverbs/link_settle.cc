// What follows completions, the side channel, and how a link ends.
#include <cstring>
#include <utility>

#include "gloo/common/string.h"
#include "transport/ibverbs/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

using base::FrameHeader;

// ---- The side channel ----

bool VerbsLink::onSocket() {
  if (!side_) {
    return false;
  }
  switch (side_.read()) {
    case SideChannel::News::kNothing:
      return false;
    case SideChannel::News::kReady:
      expectSide(false);
      if (!endpoint_->destroyed()) {
        sends().open(peerReceives_);
        touch();
      }
      break;
    case SideChannel::News::kLast:
      onLastWord();
      break;
    case SideChannel::News::kEnded:
    case SideChannel::News::kBroken:
      sideEnded_ = true;
      close();
      touch();
      break;
  }
  return true;
}

// Why the peer has given the queue pair up.
void VerbsLink::onLastWord() {
  const FrameHeader header = side_.last();
  if (muted_) {
    return;
  }
  char* place = nullptr;
  if (header.payloadBytes > 0) {
    if (!notify([&] { place = handler_.onPayload(header); }) ||
        place == nullptr) {
      return;
    }
    std::memcpy(place, side_.lastPayload(), header.payloadBytes);
  }
  notify([&] { handler_.onFrame(header, place); });
}

// ---- After the completions ----

bool VerbsLink::hasNews() const {
  if (endpoint_->destroyed()) {
    return false;
  }
  return sends().anyDone() || sends().holds() || sends().error() != 0 ||
         (sideEnded_ && !muted_) || byeIsDue() || endIsDue();
}

bool VerbsLink::settle() {
  if (endpoint_->destroyed()) {
    return false;
  }
  Guard guard(*this);
  bool moved = report();
  if (guard.destroyed() || endpoint_->destroyed()) {
    return true;
  }
  if (sends().flush()) {
    moved = true;
    touch();  // frames that were copied now are to be reported
  }
  if (endpoint_->receives().creditsDue()) {
    moved |= sends().sendCredits();
  }
  if (sends().error() != 0) {
    fail("a request could not be posted: " + base::errnoText(sends().error()));
    return true;
  }
  moved |= deliverHeld();
  if (guard.destroyed() || endpoint_->destroyed()) {
    return true;
  }
  if (proveLife()) {
    return true;
  }
  return judge() || moved;
}

bool VerbsLink::report() {
  std::vector<void*>& done = sends().done();
  if (done.empty()) {
    return false;
  }
  for (size_t i = 0; i < done.size(); i++) {
    if (!muted_ && !notify([&] { handler_.onComplete(done[i]); })) {
      return true;  // this may be gone
    }
  }
  done.clear();
  return true;
}

bool VerbsLink::byeIsDue() const { return byeHeld_ && sends().borrowed() == 0; }

// A peer that leaves takes what is on its way to it, and gives credits for it.
bool VerbsLink::endIsDue() const {
  return endHeld_ && sends().borrowed() == 0 && sends().empty() &&
         !sends().anyDone();
}

bool VerbsLink::deliverHeld() {
  const bool bye = byeIsDue();
  const bool end = endIsDue();
  if (bye) {
    byeHeld_ = false;
    if (!muted_ && !notify([&] { handler_.onFrame(bye_, nullptr); })) {
      return true;
    }
  }
  if (end) {
    endHeld_ = false;
    peerEnded_ = true;
    if (!std::exchange(muted_, true)) {
      internal::Cause cause;
      cause.kind = internal::Cause::Kind::kPeerLost;
      cause.text = str() + ": it was closed";
      handler_.onLost(std::move(cause), true);
    }
  }
  return bye || end;
}

void VerbsLink::expectLife(std::chrono::milliseconds patience) {
  if (!endpoint_->destroyed() && sends().busy()) {
    patience_ = patience;
    probe_.reset();
    extendLife();
    touch();
  }
}

// What is on its way may be long, share the port with that of other queue
// pairs, and be told of in one completion: it has as long as a slow network
// takes. (No attribute: whatever completes extends it, and it matters only to a
// queue pair that is silent after its port was down.)
void VerbsLink::extendLife() {
  constexpr uint64_t kBytesPerMillisecond = 20'000;
  oldestSeen_ = sends().oldest();
  aliveUntil_ = Clock::now() + patience_ +
                std::chrono::milliseconds(sends().bytesOnTheirWay() /
                                          kBytesPerMillisecond);
}

// True: it has failed. Polls until it is known: that is rare, and soon over.
bool VerbsLink::proveLife() {
  if (!aliveUntil_) {
    return false;
  }
  if (!probe_) {
    probe_ = sends().probe();
  }
  if (probe_ && sends().isComplete(*probe_)) {
    aliveUntil_.reset();
    return false;
  }
  if (sends().oldest() != oldestSeen_) {
    extendLife();
  }
  if (Clock::now() < *aliveUntil_) {
    touch();
    return false;
  }
  aliveUntil_.reset();
  fail("the queue pair has been silent since the port came back");
  return true;
}

// The peer is gone, or the queue pair has failed and nobody says why. What has
// not been read yet may say it: a farewell, or the first failure.
bool VerbsLink::judge() {
  const bool suspected = !suspicion_.empty();
  if (muted_ && suspected) {
    leaveQuietly();
  }
  if (muted_ || (!sideEnded_ && !suspected)) {
    return false;
  }
  if ((!sideEnded_ && Clock::now() < suspectUntil_) || !hasReadAll()) {
    touch();
    return false;
  }
  if (sideEnded_) {
    lose(side_.error().empty() ? "it was closed" : side_.error(),
         side_.error().empty());
  } else {
    const std::string why = suspicion_;
    fail(why);
  }
  return true;
}

// What there was when this was first asked. More may come all the time, for
// other links as well.
bool VerbsLink::hasReadAll() {
  const CompletionQueues& queues = poller_.queues();
  if (!takenBefore_) {
    takenBefore_ = queues.taken(endpoint_->cq());
  }
  return queues.emptiedSince(endpoint_->cq(), *takenBefore_);
}

// Nobody has to hear of the queue pair's failure, or of a reason for it.
void VerbsLink::leaveQuietly() {
  expectSide(false);
  endpoint_->destroy();
}

void VerbsLink::suspect(const std::string& why) {
  if (muted_) {
    leaveQuietly();
  } else if (std::exchange(onlyFlushed_, false)) {
    suspicion_ = why;  // an event that came behind its own consequence
  } else if (suspicion_.empty()) {
    suspicion_ = why;
    suspectUntil_ = Clock::now() + poller_.adapter().settings().reasonTime;
    expectSide(true);
    touch();
  }
}

// The peer may have said why already.
void VerbsLink::fail(const std::string& why) {
  if (muted_) {
    leaveQuietly();
  }
  if (endpoint_->destroyed()) {
    return;
  }
  Guard guard(*this);
  while (!muted_ && onSocket() && !guard.destroyed()) {
  }
  if (!guard.destroyed() && !muted_) {
    lose(why, false);
  }
}

void VerbsLink::lose(const std::string& text, bool ended) {
  Guard guard(*this);
  report();
  if (guard.destroyed() || muted_) {
    return;
  }
  endpoint_->destroy();
  // A peer that had said bye before has left, and has not died.
  if (std::exchange(byeHeld_, false) &&
      !notify([&] { handler_.onFrame(bye_, nullptr); })) {
    return;
  }
  muted_ = true;
  internal::Cause cause;
  cause.kind = internal::Cause::Kind::kPeerLost;
  cause.text = MakeString(str(), ": ", text);
  handler_.onLost(std::move(cause), ended);
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
