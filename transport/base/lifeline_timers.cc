// What the thread of the lifelines does at its time.
#include <algorithm>
#include <exception>
#include <utility>

#include "transport/base/lifeline_impl.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

void Lifelines::Impl::onTimer(Clock::time_point now) {
  for (auto at = lines_.begin(); at != lines_.end();) {
    const uint64_t id = at->first;
    Line& line = (at++)->second;  // which may go
    orExhaust(id, [&] { onLineTimer(id, line, now); });
  }
  std::erase_if(orphans_, [&](const auto& it) { return now >= it.limit; });
  for (auto& [key, world] : worlds_) {
    try {
      judge(key, world, now);
    } catch (const std::exception& e) {
      exhaust(key, e);
    }
  }
}

// Suspects whose time is up.
void Lifelines::Impl::judge(Key key, World& world, Clock::time_point now) {
  for (auto at = world.suspicions.begin(); at != world.suspicions.end();) {
    if (now < at->second.limit) {
      ++at;
      continue;
    }
    Suspicion suspicion = std::move(at->second);
    at = world.suspicions.erase(at);
    if (!suspicion.leaves && !world.left.contains(suspicion.cause.culprit)) {
      learn(key, suspicion.cause, 0);
    } else if (!world.cause) {
      suspicion.cause.kind = internal::Cause::Kind::kClosed;
      news_.emplace_back(key, std::move(suspicion.cause));
    }
  }
}

Lifelines::Impl::Clock::time_point Lifelines::Impl::nextTimer() const {
  auto next = Clock::time_point::max();
  for (const auto& [id, line] : lines_) {
    next = std::min({next, line.timer, line.probeLimit});
  }
  for (const Orphan& orphan : orphans_) {
    next = std::min(next, orphan.limit);
  }
  for (const auto& [key, world] : worlds_) {
    for (const auto& [rank, suspicion] : world.suspicions) {
      next = std::min(next, suspicion.limit);
    }
  }
  return next;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
