// A thread of the library's own.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// Throws IoException where the system gives none, with what to raise.
template <typename Run>
std::thread startThread(Run&& run) {
  try {
    return std::thread(std::forward<Run>(run));
  } catch (const std::system_error& e) {
    GLOO_THROW_IO_EXCEPTION(
        "cannot start a thread: ", e.what(),
        " (raise the limits of processes, ulimit -u, of address space,"
        " ulimit -v, and this container's of pids)");
  }
}

}  // namespace internal
GLOO_NAMESPACE_END
