// What comes of a connector's calls that fail.
#include <cerrno>
#include <exception>
#include <utility>

#include "gloo/common/logging.h"
#include "transport/base/connector_impl.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Of a call that has failed.
std::string Connector::Impl::whyOf(const Call& call) {
  return call.unwatched == 0
             ? call.exchange.why()
             : errnoText(call.unwatched) + watchRemedy(call.unwatched);
}

Party::Failure Connector::Impl::failureOf(const Call& call) {
  if (call.unwatched != 0) {
    return Party::Failure::kShort;
  }
  const Hello* const answer =
      call.exchange.answered() ? &call.exchange.theirs() : nullptr;
  if (answer != nullptr && answer->verdict == Verdict::kRefused) {
    return Party::Failure::kRefused;
  }
  if (answer != nullptr && answer->verdict == Verdict::kUnknown) {
    return answer->srcNonce == call.dstNonce ? Party::Failure::kPassed
                                             : Party::Failure::kUnknown;
  }
  if (answer != nullptr || call.exchange.garbled()) {
    return Party::Failure::kBroken;
  }
  if (call.exchange.isShort()) {
    return Party::Failure::kShort;
  }
  switch (call.exchange.error()) {
    case ECONNREFUSED:
      return Party::Failure::kNobody;
    case ECONNRESET:
    case EPIPE:
      return Party::Failure::kHungUp;
    default:
      return call.exchange.hungUp() ? Party::Failure::kHungUp
                                    : Party::Failure::kUnreachable;
  }
}

// `why` by value: it may be part of the call.
void Connector::Impl::fail(Calls::iterator at, std::string why) {
  const auto failure = failureOf(at->second);
  // Before the call is gone: there may be no memory for it.
  const bool says = !at->second.outgoing || failure == Party::Failure::kRefused;
  const std::string text =
      says ? std::move(why) : at->second.to.str() + ": " + why;
  end(at, failure, text);
}

void Connector::Impl::end(Calls::iterator at, Party::Failure failure,
                          const std::string& text) {
  const Call call = std::move(at->second);
  calls_.erase(at);
  if (!call.outgoing) {
    callers_--;
    if (garbage_.allows(Clock::now())) {
      GLOO_DEBUG("A connection to ", endpoint.str(), " was refused: ", text);
    }
  } else if (const auto party = parties.find(call.nonce);
             party != parties.end()) {
    party->second->onConnectFailed(call.tag, failure, text);
  }
}

void Connector::Impl::drop(uint64_t id, const std::exception& e) {
  const auto at = calls_.find(id);
  if (shortage_.allows(Clock::now())) {
    GLOO_WARN("A greeting at ", endpoint.str(), " is given up: ", e.what());
  }
  if (at != calls_.end()) {  // with a text so short that it takes no memory
    end(at, Party::Failure::kShort, "out of memory");
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
