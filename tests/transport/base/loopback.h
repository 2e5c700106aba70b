// An address on this host.
#pragma once

#include <netinet/in.h>

#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Port 0: any that is free.
inline transport::base::SocketAddress loopback(int port = 0) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in.sin_port = htons(static_cast<uint16_t>(port));
  return {reinterpret_cast<sockaddr*>(&in), sizeof(in)};
}

}  // namespace test
GLOO_NAMESPACE_END
