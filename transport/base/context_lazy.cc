// Pairs that are connected at their first use: the peer may have left by then.
#include <algorithm>
#include <memory>

#include "gloo/common/string.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;

// Something waits for a pair that is not connected.
void Context::want(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  // A call of the peer's that was answered will do.
  if (lazy_ && complete_ && p.known && !p.calling && !p.putOff &&
      p.answering == nullptr) {
    call(peer);
  }
}

// Our call has failed.
void Context::missed(int peer, Failure failure, const std::string& text) {
  if (failure == Failure::kRefused && text == closedText(peer)) {
    absent(peer, {});
  } else if (failure == Failure::kPassed || failure == Failure::kHungUp) {
    callLater(peer);
  } else if (failure == Failure::kShort) {
    failNew(
        Cause::Kind::kIo, rank(),
        MakeString("rank ", rank(), " cannot call rank ", peer, " at ", text));
  } else if (failure == Failure::kBroken) {
    failNew(
        Cause::Kind::kIo, peer,
        MakeString("rank ", peer, " gave a broken answer to a call: ", text));
  } else {
    const bool gone =
        failure == Failure::kNobody || failure == Failure::kUnknown;
    suspect(peer, MakeString("cannot reach rank ", peer, " at ", text), gone);
  }
}

void Context::callLater(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.putOff = true;
  device_->connector().wake(nonce_, static_cast<uint64_t>(peer), p.backoff);
  p.backoff = std::min(p.backoff * 2, Peer::kMaxBackoff);
}

// Unless the peer has called meanwhile, or there is nothing to call it for.
void Context::onTimer(uint64_t tag) try {
  if (tag == kDisputeTimer) {
    endDispute();
    return;
  }
  const int peer = static_cast<int>(tag);
  const Pair& pair = *pairAt(peer);
  peers_[static_cast<size_t>(peer)].putOff = false;
  if (!pair.linked() && !pair.departed() && cause_ == nullptr && !byeSaid_) {
    want(peer);
  }
} catch (const std::exception& e) {
  const bool disputes = tag == kDisputeTimer;
  failAfter(e, disputes ? "a dispute of" : "a call to",
            disputes ? rank() : static_cast<int>(tag));
}

// The peer has left, and its farewell has not reached us: there was no link for
// it. That concerns nobody who does not need it.
void Context::absent(int peer, const std::string& why) {
  Pair& pair = *pairAt(peer);
  if (cause_ != nullptr || pair.departed()) {
    return;
  }
  pair.depart();
  if (direct_ != nullptr) {
    direct_->depart(peer);
  }
  pair.dropWildcards();
  if (pair.leftWaiting() || pair.sending()) {
    failDeparted(peer, why);
  }
  changes_++;
  domain().changed();
}

// What the lifelines say. (Only they say that a rank has left by what this one
// has found; that it is another rank is looked at all the same.)
void Context::heardOfEnd(const Cause& cause) try {
  const bool isOther =
      cause.culprit >= 0 && cause.culprit < size() && cause.culprit != rank();
  if (cause.kind == Cause::Kind::kClosed && cause.foundBy == rank() &&
      isOther) {
    auto lock = this->lock();
    absent(cause.culprit, cause.text);
  } else {
    fail(std::make_shared<Cause>(cause));
  }
} catch (const std::exception& e) {
  auto lock = this->lock();
  failAfter(e, "the news of", cause.culprit);
}

// For lazy pairs.
bool Context::isCalling() const {
  return lazy_ && complete_ &&
         std::any_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.calling; });
}

}  // namespace transport::base
GLOO_NAMESPACE_END
