// The network interfaces of this host, and the choice among them.
#pragma once

#include <string>
#include <vector>

#include "gloo/config.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {

// One address of one interface.
struct Interface {
  std::string name;
  base::SocketAddress address;  // port 0
  bool up = false;
  bool loopback = false;

  // Other hosts may reach it: neither loopback nor link-local.
  bool routable() const;
};

// What the caller asks for; the first that is set counts.
struct Wanted {
  base::SocketAddress address;  // length 0: any
  std::string name;
  std::string host;
  int family = 0;  // AF_UNSPEC: any
};

// In the kernel's order. Throws IoException.
std::vector<Interface> listInterfaces();

// Addresses that a host name resolves to; none if it does not. `why` tells why.
std::vector<base::SocketAddress> resolveHost(const std::string& host,
                                             int family, std::string* why);

// Throws InvalidOperationException that says what was tried and what there is.
// `resolve` and `ownName` stand for the system's.
using Resolve = std::vector<base::SocketAddress> (*)(const std::string& host,
                                                     int family,
                                                     std::string* why);
Interface chooseInterface(const Wanted& wanted,
                          const std::vector<Interface>& interfaces,
                          const std::string& ownName, Resolve resolve);

}  // namespace transport::tcp
GLOO_NAMESPACE_END
