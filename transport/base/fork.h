// What becomes of the transports in a forked child: nothing of them works there
// (gloo/internal/fork.h). A child that kept its parent's sockets open would
// hide the parent's death from the peers, so every descriptor that UniqueFd
// owns is closed in the child.
#pragma once

#include "gloo/config.h"
#include "gloo/internal/fork.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::instanceOfProcess;
using internal::Origin;
using internal::processGeneration;

// For UniqueFd: descriptors that the child closes. Thread-safe, lock-free, and
// async-signal-safe.
void registerDescriptor(int fd);
void unregisterDescriptor(int fd);

}  // namespace transport::base
GLOO_NAMESPACE_END
