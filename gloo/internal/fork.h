// What becomes of the library's objects in a forked child: they are inert.
// Their calls throw and their destructors command nothing, since locks may be
// held by threads that do not exist there. The child may make new objects of
// its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

namespace fork_detail {
extern std::atomic<uint32_t> generation;
}

// 0 in the process that loaded the library, one more in each forked child.
// Thread-safe.
inline uint32_t processGeneration() {
  // relaxed: changes only in the child, before it has a second thread
  return fork_detail::generation.load(std::memory_order_relaxed);
}

// In which process an object was made: a member of whatever owns threads,
// locks or descriptors. Immutable; thread-safe.
class Origin {
 public:
  Origin() : generation_(processGeneration()) {}

  // The object came through a fork: its locks may be held by threads that do
  // not exist here, its descriptors are closed.
  bool inherited() const { return generation_ != processGeneration(); }

  // Throws InvalidOperationException when inherited; `what` names the object:
  // "context".
  void check(const char* what) const {
    if (inherited()) [[unlikely]] {
      refuse(what);
    }
  }

 private:
  [[noreturn]] static void refuse(const char* what);

  uint32_t generation_;
};

// The one T of this process; a forked child makes one of its own. Never
// destroyed. Thread-safe and lock-free: a lock might be held at the fork.
template <typename T>
T& instanceOfProcess() {
  struct Instance {
    T value;
    Origin origin;
    const Instance* parents = nullptr;  // so that it is no leak
  };
  static std::atomic<Instance*> current{nullptr};
  Instance* found = current.load();
  while (found == nullptr || found->origin.inherited()) {
    auto fresh = std::make_unique<Instance>();
    fresh->parents = found;
    if (current.compare_exchange_strong(found, fresh.get())) {
      found = fresh.release();
    }
  }
  return found->value;
}

// What `make` returned at the first call, in forked children too. Never
// destroyed. Thread-safe and lock-free, unlike the first use of a function's
// static: a child forked during that by another thread waits for it forever. Of
// threads that come at once each calls `make`, a lambda of its own for each
// value, and all get the same result.
template <typename Make>
const auto& madeOnce(const Make& make) {
  using T = std::invoke_result_t<const Make&>;
  static std::atomic<const T*> made{nullptr};
  const T* found = made.load();
  if (found == nullptr) [[unlikely]] {
    auto fresh = std::make_unique<const T>(make());
    if (made.compare_exchange_strong(found, fresh.get())) {
      found = fresh.release();
    }
  }
  return *found;
}

}  // namespace internal
GLOO_NAMESPACE_END
