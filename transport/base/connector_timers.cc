// What a connector does at its time.
#include <algorithm>

#include "transport/base/connector_impl.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using std::chrono::milliseconds;

void Connector::Impl::wake(uint64_t nonce, uint64_t tag, milliseconds pause) {
  timers_.push_back({nonce, tag, Clock::now() + pause});
  domain.changed();
}

void Connector::Impl::expire() {
  const auto now = Clock::now();
  if (!listening_ && now >= listenAgain_) {
    listen(true);
  }
  ring(now);
  for (;;) {
    const auto late = std::find_if(
        calls_.begin(), calls_.end(),
        [&](const auto& entry) { return now >= entry.second.deadline; });
    if (late == calls_.end()) {
      return;
    }
    orDrop(late->first, [&] { fail(late, "no answer in time"); });
  }
}

// Those whose time has come before; a party may set new ones.
void Connector::Impl::ring(Clock::time_point now) {
  for (;;) {
    const auto due =
        std::find_if(timers_.begin(), timers_.end(),
                     [&](const Timer& timer) { return now >= timer.at; });
    if (due == timers_.end()) {
      return;
    }
    const Timer timer = *due;
    timers_.erase(due);
    if (const auto party = parties.find(timer.nonce); party != parties.end()) {
      party->second->onTimer(timer.tag);
    }
  }
}

milliseconds Connector::Impl::nextTimer() const {
  auto next = listening_ ? Clock::time_point::max() : listenAgain_;
  for (const auto& [id, call] : calls_) {
    next = std::min(next, call.deadline);
  }
  for (const Timer& timer : timers_) {
    next = std::min(next, timer.at);
  }
  if (next == Clock::time_point::max()) {
    return milliseconds::max();
  }
  return std::max(milliseconds(0),
                  std::chrono::ceil<milliseconds>(next - Clock::now()));
}

}  // namespace transport::base
GLOO_NAMESPACE_END
