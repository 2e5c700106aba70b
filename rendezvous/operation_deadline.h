// How long a call to one of the library's stores may take where its signature
// has no time limit.
#pragma once

#include <optional>

#include "gloo/common/deadline.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// That of the innermost OperationDeadline of this thread; without one,
// Store::kDefaultTimeout from now.
Deadline operationDeadline();

// While it lives, store calls of this thread end by `deadline`, or that of one
// around it if it is sooner.
class OperationDeadline {
 public:
  explicit OperationDeadline(Deadline deadline);
  ~OperationDeadline();
  OperationDeadline(const OperationDeadline&) = delete;
  OperationDeadline& operator=(const OperationDeadline&) = delete;

 private:
  const std::optional<Deadline> outer_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
