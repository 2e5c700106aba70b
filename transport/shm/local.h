// Memory made in this process. Ranks that are threads of one process use one
// mapping: then tools that watch threads see what they do to each other.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "gloo/config.h"
#include "transport/base/fork.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// By a secret. Does not keep the memory. Thread-safe. A forked child has its
// own, which begins empty.
template <typename Memory>
class Local {
 public:
  // Never destroyed: contexts take leave when the process exits.
  static Local& instance() { return base::instanceOfProcess<Local>(); }

  void add(const Secret& secret, const std::shared_ptr<Memory>& memory) {
    std::lock_guard<std::mutex> guard(mutex_);
    std::erase_if(memory_,
                  [](const auto& entry) { return entry.second.expired(); });
    memory_[secret] = memory;
  }
  // Null: it was made elsewhere.
  std::shared_ptr<Memory> find(const Secret& secret) {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto found = memory_.find(secret);
    return found != memory_.end() ? found->second.lock() : nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<Secret, std::weak_ptr<Memory>> memory_;
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
