// Another process of this PID namespace, by a descriptor: unlike its pid, that
// stays its own when it has ended (pidfd_open(2)).
#pragma once

#include "gloo/config.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// None: errno says why; ESRCH: there is no such process.
UniqueFd openProcess(int pid);

// A zombie has ended too: its parent has not looked yet.
bool hasEnded(const UniqueFd& process);
// By its pid, if that is not another's by now. False: also where it cannot be
// found out.
bool hasEnded(int pid);

}  // namespace transport::base
GLOO_NAMESPACE_END
