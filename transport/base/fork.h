// What becomes of the library in a forked child: nothing of it works there. A
// child that kept its parent's sockets open would hide the parent's death from
// the peers, so every descriptor that UniqueFd owns is closed in the child, and
// objects made before the fork are inert: their calls throw, their destructors
// command nothing. The child may make new objects of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

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

// For UniqueFd: descriptors that the child closes. Thread-safe, lock-free, and
// async-signal-safe.
void registerDescriptor(int fd);
void unregisterDescriptor(int fd);

}  // namespace transport::base
GLOO_NAMESPACE_END
