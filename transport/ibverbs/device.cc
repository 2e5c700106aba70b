#include "gloo/transport/ibverbs/device.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/linux.h"
#include "gloo/common/logging.h"
#include "gloo/internal/cuda.h"
#include "gloo/transport/tcp/device.h"
#include "transport/base/device.h"
#include "transport/ibverbs/factory.h"
#include "transport/ibverbs/ports.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

// A RoCE GID that is an IP address, as such; length 0 if it is none.
base::SocketAddress addressOf(const Gid& gid) {
  if (gid.type != GidType::kRoce2) {
    return base::SocketAddress();
  }
  if (gid.ipv4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, gid.raw.raw + 12, sizeof(v4.sin_addr));
    return base::SocketAddress(reinterpret_cast<sockaddr*>(&v4), sizeof(v4));
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  std::memcpy(&v6.sin6_addr, gid.raw.raw, sizeof(v6.sin6_addr));
  if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) {
    v6.sin6_scope_id = ::if_nametoindex(gid.interface.c_str());
  }
  return base::SocketAddress(reinterpret_cast<sockaddr*>(&v6), sizeof(v6));
}

// The kernel lists GIDs that are no address of this process: of interfaces in
// another network namespace, and the link-local one that it makes of the
// device's number, whatever addresses the interface has.
bool canListenOn(const base::SocketAddress& address) {
  const base::UniqueFd socket(
      ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket && ::bind(socket.get(), address.get(), address.length()) == 0;
}

base::SocketAddress tcpAddress(const std::string& host) {
  const tcp::attr found = tcp::CreateDeviceAttr(tcp::attr(host.c_str()));
  return base::SocketAddress(reinterpret_cast<const sockaddr*>(&found.ai_addr),
                             static_cast<socklen_t>(found.ai_addrlen));
}

base::SocketAddress insteadOf(const ChosenPort& chosen) {
  const std::string what =
      MakeString("GID ", chosen.gid.str(), " of RDMA device ", chosen.device,
                 " is no address of this process's network namespace");
  try {
    const base::SocketAddress address = tcpAddress(std::string());
    GLOO_INFO(what, ": peers greet at ", address.str());
    return address;
  } catch (const Exception& e) {
    GLOO_THROW_IO_EXCEPTION(
        what, ", and peers can greet at no other one: ", e.what(),
        ". Give an interface an address, or name one as hostname of the "
        "device's attributes");
  }
}

// Where peers greet this device.
base::SocketAddress greetingAddress(const Adapter& adapter) {
  const std::string& host = adapter.settings().hostname;
  if (host.empty() && adapter.chosen().gidIndex >= 0) {
    const base::SocketAddress own = addressOf(adapter.chosen().gid);
    if (own.length() > 0) {
      return canListenOn(own) ? own : insteadOf(adapter.chosen());
    }
  }
  return tcpAddress(host);
}

// As far as it can be known before any memory is registered.
bool reachesCuda() {
  constexpr int kFirstDevice = 0;
  return internal::cudaDriver() != nullptr &&
         ((api().regDmabufMr != nullptr &&
           internal::canExportCuda(kFirstDevice)) ||
          ::access("/sys/module/nvidia_peermem", F_OK) == 0);
}

std::shared_ptr<transport::Device> makeDevice(const struct attr& wanted,
                                              bool lazy) {
  auto poller = std::make_unique<VerbsPoller>(wanted);
  const Adapter& adapter = poller->adapter();
  const base::SocketAddress local = greetingAddress(adapter);
  base::DeviceInfo info;
  info.name = MakeString("ibverbs, ", adapter.chosen().reason);
  info.pciBusId = infinibandToBusID(adapter.chosen().device);
  info.speedMbps = adapter.speedMbps();
  info.gpuDirect = &reachesCuda;
  info.lazy = lazy;
  return std::make_shared<base::Device>(
      std::move(info), local,
      [&poller](base::ProgressDomain& domain, base::DeviceInfo&) {
        return std::make_unique<VerbsFactory>(domain, std::move(poller));
      });
}

}  // namespace

std::vector<std::string> getDeviceNames() {
  std::vector<std::string> names;
  if (findApi() != nullptr) {
    for (const RdmaDevice& device : listDevices()) {
      names.push_back(device.name);
    }
  }
  return names;
}

std::shared_ptr<transport::Device> CreateDevice(const struct attr& attr) {
  return makeDevice(attr, false);
}

std::shared_ptr<transport::Device> CreateLazyDevice(const struct attr& attr) {
  return makeDevice(attr, true);
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
