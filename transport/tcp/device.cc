// Where a device greets its peers. (What makes the device is in
// transport/auto: it uses shared memory as well.)
#include "gloo/transport/tcp/device.h"

#include <cstring>

#include "gloo/common/error.h"
#include "gloo/common/utils.h"
#include "transport/tcp/interfaces.h"

GLOO_NAMESPACE_BEGIN
namespace transport::tcp {
namespace {

Wanted wantedBy(const struct attr& attr) {
  Wanted wanted;
  wanted.name = attr.iface;
  wanted.host = attr.hostname;
  wanted.family = attr.ai_family;
  if (attr.ai_fd >= 0) {
    wanted.address = base::localAddress(attr.ai_fd);
    if (wanted.address.port() == 0) {  // bound ones have one
      GLOO_THROW_INVALID_OPERATION_EXCEPTION("attr.ai_fd = ", attr.ai_fd,
                                             " is not a bound socket");
    }
  } else if (attr.ai_addrlen > 0) {
    wanted.address =
        base::SocketAddress(reinterpret_cast<const sockaddr*>(&attr.ai_addr),
                            static_cast<socklen_t>(attr.ai_addrlen));
  }
  return wanted;
}

}  // namespace

struct attr CreateDeviceAttr(const struct attr& src) {
  const Interface found = chooseInterface(wantedBy(src), listInterfaces(),
                                          getHostname(), &resolveHost);
  struct attr attr = src;
  attr.iface = found.name;
  attr.ai_family = found.address.family();
  attr.ai_socktype = SOCK_STREAM;
  attr.ai_protocol = IPPROTO_TCP;
  attr.ai_addr = {};
  std::memcpy(&attr.ai_addr, found.address.get(), found.address.length());
  attr.ai_addrlen = static_cast<int>(found.address.length());
  return attr;
}

}  // namespace transport::tcp
GLOO_NAMESPACE_END
