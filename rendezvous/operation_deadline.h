// How long a call to one of the library's stores may take where its signature
// has no time limit.
#pragma once

#include <atomic>
#include <optional>

#include "gloo/common/deadline.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// That of the innermost OperationDeadline of this thread; without one,
// Store::kDefaultTimeout from now.
Deadline operationDeadline();

// Whether the store calls of this thread should end now, as if their time were
// over; and whether they can be told so at all, by another thread.
bool operationStopped();
bool operationCanStop();

// While it lives, store calls of this thread end by `deadline`, or that of one
// around it if it is sooner. Those that wait in pollUntil() or retryUntil() end
// soon after `stop`, which is borrowed, has become true.
class OperationDeadline {
 public:
  explicit OperationDeadline(Deadline deadline,
                             const std::atomic<bool>* stop = nullptr);
  ~OperationDeadline();
  OperationDeadline(const OperationDeadline&) = delete;
  OperationDeadline& operator=(const OperationDeadline&) = delete;

 private:
  const std::optional<Deadline> outer_;
  const std::atomic<bool>* const outerStop_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
