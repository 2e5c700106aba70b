#include "rendezvous/operation_deadline.h"

#include <algorithm>

#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

thread_local Deadline innermost;

}  // namespace

Deadline operationDeadline() {
  return Deadline(
      std::min(innermost.at(), Deadline::after(Store::kDefaultTimeout).at()));
}

OperationDeadline::OperationDeadline(Deadline deadline) : outer_(innermost) {
  innermost = Deadline(std::min(outer_.at(), deadline.at()));
}

OperationDeadline::~OperationDeadline() { innermost = outer_; }

}  // namespace rendezvous
GLOO_NAMESPACE_END
