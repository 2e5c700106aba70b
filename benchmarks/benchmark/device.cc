#include "benchmarks/benchmark/device.h"

#include <algorithm>

#include "gloo/config.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#if GLOO_USE_REDIS
#include "gloo/rendezvous/redis_store.h"
#endif
#if GLOO_HAVE_TRANSPORT_IBVERBS
#include "gloo/transport/ibverbs/device.h"
#endif

namespace benchmark {
namespace {

using DevicePtr = std::shared_ptr<gloo::transport::Device>;

// Empty: the one that the library finds.
std::vector<std::string> interfacesOf(const Options& options) {
  if (!options.tcpDevices.empty()) {
    return options.tcpDevices;
  }
  return {options.localRanks != 0 ? "lo" : ""};
}

std::vector<DevicePtr> makeTcpDevices(const Options& options) {
  std::vector<DevicePtr> devices;
  for (const auto& interface : interfacesOf(options)) {
    gloo::transport::tcp::attr attr;
    attr.iface = interface;
    attr.shm = false;  // who asks this program for TCP wants to measure TCP
    devices.push_back(gloo::transport::tcp::CreateDevice(attr));
  }
  return devices;
}

#if GLOO_HAVE_TRANSPORT_IBVERBS
gloo::transport::ibverbs::attr ibverbsAttr(const Options& options,
                                           const std::string& name) {
  gloo::transport::ibverbs::attr attr;
  attr.name = name;
  attr.port = options.ibPort;
  attr.index = options.ibIndex;
  attr.eagerBytes = options.ibEagerBytes.value_or(attr.eagerBytes);
  return attr;
}
#endif

// One for each of the longer list of interfaces and RDMA devices.
std::vector<DevicePtr> makeAutoDevices(const Options& options) {
  const std::vector<std::string> interfaces = interfacesOf(options);
  const size_t ports = options.ibDevices.size();
  std::vector<DevicePtr> devices;
  for (size_t i = 0; i < std::max(interfaces.size(), ports); i++) {
    gloo::transport::DeviceAttr attr;
    attr.tcp.iface = interfaces[i % interfaces.size()];
#if GLOO_HAVE_TRANSPORT_IBVERBS
    attr.ibverbs =
        ibverbsAttr(options, ports > 0 ? options.ibDevices[i % ports] : "");
#endif
    devices.push_back(gloo::transport::CreateDevice(attr));
  }
  return devices;
}

#if GLOO_HAVE_TRANSPORT_IBVERBS
std::vector<DevicePtr> makeIbverbsDevices(const Options& options) {
  std::vector<std::string> names = options.ibDevices;
  if (names.empty()) {
    names.push_back("");  // the first active one
  }
  std::vector<DevicePtr> devices;
  for (const auto& name : names) {
    devices.push_back(
        gloo::transport::ibverbs::CreateDevice(ibverbsAttr(options, name)));
  }
  return devices;
}
#endif

}  // namespace

std::string transportTrouble(const std::string& transport) {
  if (transport == "tcp") {
    return "";
  }
  if (transport == "ibverbs") {
    return GLOO_HAVE_TRANSPORT_IBVERBS
               ? ""
               : "not in this build; configure with -DUSE_IBVERBS=ON";
  }
  if (transport == "shm" || transport == "auto") {
    return "";
  }
  if (transport == "tls") {
    return "not in this build";
  }
  return "there is no such transport";
}

bool redisAvailable() { return GLOO_USE_REDIS; }

std::vector<DevicePtr> makeDevices(const Options& options) {
#if GLOO_HAVE_TRANSPORT_IBVERBS
  if (options.transport == "ibverbs") {
    return makeIbverbsDevices(options);
  }
#endif
  if (options.transport == "shm") {
    return {gloo::transport::shm::CreateDevice()};
  }
  if (options.transport == "auto") {
    return makeAutoDevices(options);
  }
  return makeTcpDevices(options);
}

std::shared_ptr<gloo::rendezvous::Store> makeStore(const Options& options) {
  std::shared_ptr<gloo::rendezvous::Store> store;
#if GLOO_USE_REDIS
  if (!options.redisHost.empty()) {
    store = std::make_shared<gloo::rendezvous::RedisStore>(options.redisHost,
                                                           options.redisPort);
  }
#endif
  if (!options.storeUrl.empty()) {
    store = gloo::rendezvous::openStore(options.storeUrl, options.rank);
  }
  if (store == nullptr) {
    store = std::make_shared<gloo::rendezvous::FileStore>(options.sharedPath);
  }
  return std::make_shared<gloo::rendezvous::PrefixStore>(options.prefix, store);
}

}  // namespace benchmark
