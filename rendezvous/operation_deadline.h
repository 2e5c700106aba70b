// How long a call to one of the library's stores may take where its signature
// has no time limit.
#pragma once

#include "gloo/common/deadline.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// The sooner of Store::kDefaultTimeout from now and the innermost
// OperationDeadline of this thread.
Deadline operationDeadline();

// While it lives, store calls of this thread end by `deadline`.
class OperationDeadline {
 public:
  explicit OperationDeadline(Deadline deadline);
  ~OperationDeadline();
  OperationDeadline(const OperationDeadline&) = delete;
  OperationDeadline& operator=(const OperationDeadline&) = delete;

 private:
  const Deadline outer_;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
