#include "benchmarks/support/device.h"

#include <cstdio>
#include <cstdlib>

#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#if GLOO_HAVE_TRANSPORT_IBVERBS
#include "gloo/transport/ibverbs/device.h"
#endif

namespace support {

std::shared_ptr<gloo::transport::Device> makeDevice(
    const std::string& transport, [[maybe_unused]] const std::string& device) {
  if (transport == "tcp") {
    gloo::transport::tcp::attr attr;
    attr.iface = "lo";
    attr.shm = false;  // TCP is what is compared
    return gloo::transport::tcp::CreateDevice(attr);
  }
  if (transport == "shm") {
    return gloo::transport::shm::CreateDevice();
  }
  if (transport == "auto") {
    gloo::transport::DeviceAttr attr;
    attr.tcp.iface = "lo";
    return gloo::transport::CreateDevice(attr);
  }
#if GLOO_HAVE_TRANSPORT_IBVERBS
  if (transport == "ibverbs") {
    gloo::transport::ibverbs::attr attr;
    attr.name = device;
    return gloo::transport::ibverbs::CreateDevice(attr);
  }
#endif
  constexpr int kNotAvailable = 3;
  std::fprintf(stderr, "transport '%s' is not in this build\n",
               transport.c_str());
  std::exit(kNotAvailable);
}

}  // namespace support
