#include "gloo/transport/auto/device.h"

#include <algorithm>

#include "gloo/common/linux.h"
#include "gloo/transport/tcp/device.h"
#include "transport/auto/factory.h"
#include "transport/base/device.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

std::shared_ptr<Device> CreateDevice(const DeviceAttr& wanted) {
  const tcp::attr attr = tcp::CreateDeviceAttr(wanted.tcp);
  base::DeviceInfo info;
  info.name = (wanted.shm ? "auto, shm or tcp, " : "auto, tcp, ") + attr.iface;
  info.pciBusId = interfaceToBusID(attr.iface);
  info.speedMbps = std::max(0, getInterfaceSpeedByName(attr.iface));
  return std::make_shared<base::Device>(
      std::move(info),
      base::SocketAddress(reinterpret_cast<const sockaddr*>(&attr.ai_addr),
                          static_cast<socklen_t>(attr.ai_addrlen)),
      [&](base::ProgressDomain& domain) {
        return std::make_unique<automatic::AutoFactory>(domain, wanted.shm);
      });
}

}  // namespace transport
GLOO_NAMESPACE_END
