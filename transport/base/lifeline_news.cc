// What the thread of the lifelines tells the contexts.
#include <algorithm>
#include <exception>
#include <utility>

#include "gloo/common/logging.h"
#include "transport/base/lifeline_impl.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// It has missed something, perhaps a death: it may not go on.
void Lifelines::Impl::exhaust(Key key, const std::exception& e) {
  GLOO_WARN("the lifelines of a context end: ", e.what());
  if (const auto world = worlds_.find(key); world != worlds_.end()) {
    world->second.exhausted = true;
  }
}

void Lifelines::Impl::tellNews(std::unique_lock<std::mutex>& lock) {
  while (!news_.empty()) {
    const auto [key, cause] = std::move(news_.front());
    news_.erase(news_.begin());
    callBack(lock, key, cause);
  }
  for (;;) {
    const auto world =
        std::find_if(worlds_.begin(), worlds_.end(),
                     [](const auto& it) { return it.second.exhausted; });
    if (world == worlds_.end()) {
      return;
    }
    world->second.exhausted = false;
    internal::Cause cause;
    cause.foundBy = cause.culprit = world->second.rank;
    cause.text = "out of memory";  // so short that it takes none
    callBack(lock, world->first, cause);
  }
}

void Lifelines::Impl::callBack(std::unique_lock<std::mutex>& lock, Key key,
                               const internal::Cause& cause) {
  const auto world = worlds_.find(key);
  if (world == worlds_.end()) {
    return;
  }
  world->second.calling = true;
  const OnCause onCause = world->second.onCause;
  lock.unlock();
  try {
    onCause(cause);
  } catch (const std::exception& e) {
    GLOO_WARN("rank ", cause.foundBy, "'s news, ", cause.text,
              ", could not be told: ", e.what());
  }
  lock.lock();
  if (const auto again = worlds_.find(key); again != worlds_.end()) {
    again->second.calling = false;
  }
  called_.notify_all();
}

}  // namespace transport::base
GLOO_NAMESPACE_END
