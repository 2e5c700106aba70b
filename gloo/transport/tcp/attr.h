// Which network interface a TCP device uses.
#pragma once

#include <sys/socket.h>

#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
namespace tcp {

// The first of these that is set decides: ai_fd, ai_addrlen, iface, hostname.
// None: the interface whose address the host's name resolves to, else the first
// one that is up and has an address that other hosts can reach; loopback only
// when there is no other. Value.
struct GLOO_API attr {
  attr() = default;
  attr(const char* host) : hostname(host) {}  // NOLINT: implicit by contract

  std::string hostname;  // of this host: a name or a numeric address
  std::string iface;     // "eth0"; "lo" for loopback

  // AF_INET or AF_INET6: only addresses of this family.
  int ai_family = AF_UNSPEC;

  // Filled by CreateDeviceAttr; or by the caller, with ai_addrlen > 0.
  int ai_socktype = 0;
  int ai_protocol = 0;
  struct sockaddr_storage ai_addr {};
  int ai_addrlen = 0;

  // A bound socket: the device uses its address, with a port of its own. The
  // socket stays the caller's.
  int ai_fd = -1;

  // Peers that prove to be on the same host are reached through shared memory:
  // the same promises, in a fraction of the time. False, or GLOO_TCP_SHM=0: by
  // TCP as all others. Ranks may differ. Of a device only: nothing else looks
  // at it.
  bool shm = true;
};

}  // namespace tcp
}  // namespace transport
GLOO_NAMESPACE_END
