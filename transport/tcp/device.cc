#include "gloo/transport/tcp/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/linux.h"
#include "gloo/common/utils.h"
#include "transport/base/device.h"
#include "transport/tcp/factory.h"
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
    if (wanted.address.length() == 0) {
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

std::shared_ptr<transport::Device> makeDevice(const struct attr& src,
                                              bool lazy) {
  const struct attr attr = CreateDeviceAttr(src);
  const base::SocketAddress local(
      reinterpret_cast<const sockaddr*>(&attr.ai_addr),
      static_cast<socklen_t>(attr.ai_addrlen));
  base::DeviceInfo info;
  info.name = "tcp, " + attr.iface;
  info.pciBusId = interfaceToBusID(attr.iface);
  info.speedMbps = std::max(0, getInterfaceSpeedByName(attr.iface));
  info.lazy = lazy;
  return std::make_shared<base::Device>(
      std::move(info), local, [](base::ProgressDomain& domain) {
        return std::make_unique<TcpFactory>(domain);
      });
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

std::shared_ptr<transport::Device> CreateDevice(const struct attr& attr) {
  return makeDevice(attr, false);
}

std::shared_ptr<transport::Device> CreateLazyDevice(const struct attr& attr) {
  return makeDevice(attr, true);
}

}  // namespace transport::tcp
GLOO_NAMESPACE_END
