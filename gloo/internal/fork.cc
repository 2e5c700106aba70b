#include "gloo/internal/fork.h"

#include <pthread.h>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

std::atomic<uint32_t> fork_detail::generation{0};

namespace {

// Runs in the child, which has one thread, before fork() returns.
void countFork() { fork_detail::generation.fetch_add(1); }

// At load time, before anything has an origin.
[[maybe_unused]] const int installed =
    pthread_atfork(nullptr, nullptr, &countFork);

}  // namespace

void Origin::refuse(const char* what) {
  GLOO_THROW_INVALID_OPERATION_EXCEPTION(
      "This ", what,
      " was created before fork() and cannot be used in the "
      "child process: create a new one there");
}

}  // namespace internal
GLOO_NAMESPACE_END
