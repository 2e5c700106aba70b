#include "gloo/transport/shm/device.h"

#include <netinet/in.h>
#include <sys/prctl.h>

#include "transport/base/device.h"
#include "transport/shm/factory.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

std::shared_ptr<transport::Device> CreateDevice(const struct attr& attr) {
  FactoryOptions options;
  options.singleCopy = attr.singleCopy;
  if (attr.allowAnyTracer) {
    // Fails where there is no Yama, which then forbids nothing.
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  }
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  base::DeviceInfo info;
  info.name = "shm";
  return std::make_shared<base::Device>(
      std::move(info),
      base::SocketAddress(reinterpret_cast<const sockaddr*>(&loopback),
                          sizeof(loopback)),
      [&](base::ProgressDomain& domain, base::DeviceInfo&) {
        return std::make_unique<ShmFactory>(domain, options);
      });
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
