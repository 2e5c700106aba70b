#include "rendezvous/operation_deadline.h"

#include <algorithm>
#include <optional>

#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

thread_local std::optional<Deadline> innermost;

}  // namespace

Deadline operationDeadline() {
  return innermost ? *innermost : Deadline::after(Store::kDefaultTimeout);
}

OperationDeadline::OperationDeadline(Deadline deadline) : outer_(innermost) {
  innermost =
      outer_ ? Deadline(std::min(outer_->at(), deadline.at())) : deadline;
}

OperationDeadline::~OperationDeadline() { innermost = outer_; }

}  // namespace rendezvous
GLOO_NAMESPACE_END
