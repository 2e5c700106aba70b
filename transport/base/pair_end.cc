// How a pair ends: in order, or not.
#include <exception>

#include "gloo/common/string.h"
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

void Pair::onAbort(const FrameHeader& header, const char* payload) {
  if (byeSent_) {
    return;  // who has left is not concerned
  }
  try {
    context_.failLocked(std::make_shared<internal::Cause>(
        decodeCause({payload, header.payloadBytes})));
  } catch (const WireError& e) {
    protocolError(e.what());
  }
}

void Pair::onException(const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
}

void Pair::onLost(internal::Cause cause, bool ended) try {
  if (failed_) {
    return;
  }
  if (departed_) {  // the end of an orderly departure
    // Where this side has closed the pair the peer has not: what it was to send
    // does not come any more.
    dropWildcards();
    if (sends_ > 0 || leftWaiting()) {
      context_.failDeparted(peer_);
    }
    return;
  }
  if (byeSent_ && ended) {
    departed_ = true;  // it ended because we did
    return;
  }
  const std::string why =
      MakeString("lost the connection to rank ", peer_,
                 ended ? ": it was closed without a farewell (did the process"
                         " die?)"
                       : ": ",
                 ended ? "" : cause.text);
  if (heard_) {
    context_.failNew(internal::Cause::Kind::kPeerLost, peer_, why);
  } else {
    context_.suspect(peer_, why, ended);
  }
} catch (const std::exception& e) {
  context_.failAfter(e, "a message of", peer_);
}

void Pair::sayBye() {
  if (link_ == nullptr || byeSent_ || failed_) {
    return;
  }
  byeSent_ = true;
  sendControl(header(FrameType::kBye));
  link_->finish();
}

void Pair::answerBye() {
  if (departed_ && sends_ == 0) {
    sayBye();
  }
}

void Pair::fail(const internal::Cause& cause) {
  if (failed_) {
    return;
  }
  failed_ = true;
  context_.device().removePump(pump_);
  // Also to a peer that is leaving: the link lets go of the callers' memory.
  if (link_ != nullptr && !byeSent_) {
    sendAbort(cause);
  } else if (link_ != nullptr &&
             (sends_ > 0 ||
              ((closedHere_ || !departed_) &&
               (waits_ > 0 || incoming_.placed() || !bounds_.empty())))) {
    // The link may still read what is sent, and put what arrives in its place;
    // a peer that has not left may not have heard of our farewell, and has
    // leave to use memory.
    link_->abandon();
  }
}

void Pair::attachFailed(std::unique_ptr<Link> link,
                        const internal::Cause& cause) {
  failed_ = true;
  link_ = std::move(link);
  sendAbort(cause);
}

// Without memory for it the link's end has to do: the others still hear of it,
// and nobody here may go on waiting.
void Pair::sendAbort(const internal::Cause& cause) {
  try {
    const std::vector<char> text = encode(cause);
    FrameHeader h = header(FrameType::kAbort);
    h.payloadBytes = static_cast<uint32_t>(text.size());
    link_->finishWith(h, text.data());
  } catch (const std::exception&) {
    link_->abandon();
  }
}

void Pair::abandon() {
  failed_ = true;
  context_.device().removePump(pump_);
  if (link_ != nullptr) {
    link_->abandon();
    link_.reset();
    counted_ = {};
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
