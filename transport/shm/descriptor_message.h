// Bytes that carry a file descriptor over a Unix socket (unix(7), SCM_RIGHTS).
#pragma once

#include <sys/types.h>

#include <span>

#include "gloo/config.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// As sendmsg(2), without blocking or a signal; the descriptor is duplicated.
ssize_t sendDescriptor(int socket, std::span<const char> bytes, int descriptor);

// As recvmsg(2), without blocking; `descriptor` is what came with the bytes, if
// anything did.
ssize_t receiveDescriptor(int socket, std::span<char> bytes,
                          base::UniqueFd& descriptor);

}  // namespace transport::shm
GLOO_NAMESPACE_END
