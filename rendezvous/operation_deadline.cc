#include "rendezvous/operation_deadline.h"

#include <algorithm>
#include <optional>

#include "gloo/rendezvous/store.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

thread_local std::optional<Deadline> innermost;
thread_local const std::atomic<bool>* stopFlag = nullptr;

}  // namespace

Deadline operationDeadline() {
  return innermost ? *innermost : Deadline::after(Store::kDefaultTimeout);
}

bool operationStopped() { return stopFlag != nullptr && *stopFlag; }

bool operationCanStop() { return stopFlag != nullptr; }

OperationDeadline::OperationDeadline(Deadline deadline,
                                     const std::atomic<bool>* stop)
    : outer_(innermost), outerStop_(stopFlag) {
  if (stop != nullptr) {
    stopFlag = stop;
  }
  innermost =
      outer_ ? Deadline(std::min(outer_->at(), deadline.at())) : deadline;
}

OperationDeadline::~OperationDeadline() {
  innermost = outer_;
  stopFlag = outerStop_;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
