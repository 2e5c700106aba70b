// The devices that choose a link for each peer: the automatic one, and the TCP
// device, which uses shared memory as well.
#include "gloo/transport/auto/device.h"

#include <algorithm>
#include <utility>

#include "gloo/common/env.h"
#include "gloo/common/linux.h"
#include "gloo/common/logging.h"
#include "gloo/transport/tcp/device.h"
#include "transport/auto/factory.h"
#include "transport/base/device.h"
#include "transport/shm/factory.h"
#include "transport/tcp/factory.h"
#if GLOO_HAVE_TRANSPORT_IBVERBS
#include "transport/ibverbs/factory.h"
#endif

GLOO_NAMESPACE_BEGIN
namespace transport {
namespace {

using automatic::AutoFactory;

// Adds what shared memory needs, unless this system does not have it.
// Whether there is any.
bool addShm(AutoFactory::Factories& factories, base::ProgressDomain& domain) {
  try {
    factories.push_back(
        std::make_unique<shm::ShmFactory>(domain, shm::FactoryOptions{}));
    return true;
  } catch (const IoException& e) {
    GLOO_INFO("no shared memory: ", e.what());
    return false;
  }
}

base::DeviceInfo describe(const tcp::attr& attr, bool lazy) {
  base::DeviceInfo info;
  info.pciBusId = interfaceToBusID(attr.iface);
  info.speedMbps = std::max(0, getInterfaceSpeedByName(attr.iface));
  info.lazy = lazy;
  return info;
}

base::SocketAddress addressOf(const tcp::attr& attr) {
  return base::SocketAddress(reinterpret_cast<const sockaddr*>(&attr.ai_addr),
                             static_cast<socklen_t>(attr.ai_addrlen));
}

#if GLOO_HAVE_TRANSPORT_IBVERBS
using VerbsPort = std::unique_ptr<ibverbs::VerbsPoller>;

// Null when there is no port that can be used. Throws where a device is named
// that does not exist.
VerbsPort openPort(const DeviceAttr& wanted, const Environment& environment) {
  if (!wanted.rdma || !environment.autoIbverbs) {
    return nullptr;
  }
  try {
    return std::make_unique<ibverbs::VerbsPoller>(wanted.ibverbs);
  } catch (const ibverbs::NoDeviceException& e) {
    if (!wanted.ibverbs.name.empty()) {
      GLOO_THROW_INVALID_OPERATION_EXCEPTION(
          "the RDMA device ", wanted.ibverbs.name, ": ", e.what());
    }
    GLOO_INFO("no RDMA: ", e.what());
  } catch (const IoException& e) {
    GLOO_INFO("no RDMA: ", e.what());
  }
  return nullptr;
}
#endif

std::shared_ptr<Device> makeAutomatic(const DeviceAttr& wanted, bool lazy) {
  const Environment environment = Environment::fromEnvironment();
  const tcp::attr attr = tcp::CreateDeviceAttr(wanted.tcp);
  const bool shm = wanted.shm && environment.autoShm;
  base::DeviceInfo info = describe(attr, lazy);
  std::string others;
#if GLOO_HAVE_TRANSPORT_IBVERBS
  VerbsPort port = openPort(wanted, environment);
  if (port != nullptr) {
    const ibverbs::Adapter& adapter = port->adapter();
    others = MakeString("ibverbs ", adapter.chosen().device, " port ",
                        adapter.chosen().port, " or ");
    info.pciBusId = infinibandToBusID(adapter.chosen().device);
    info.speedMbps = adapter.speedMbps();
  }
#endif
  others += "tcp, " + attr.iface;
  return std::make_shared<base::Device>(
      std::move(info), addressOf(attr),
      [&](base::ProgressDomain& domain, base::DeviceInfo& ours) {
        AutoFactory::Factories factories;
        const bool shared = shm && addShm(factories, domain);
        ours.name = (shared ? "auto, shm or " : "auto, ") + others;
#if GLOO_HAVE_TRANSPORT_IBVERBS
        if (port != nullptr) {
          factories.push_back(
              std::make_unique<ibverbs::VerbsFactory>(domain, std::move(port)));
        }
#endif
        factories.push_back(std::make_unique<tcp::TcpFactory>(domain));
        return std::make_unique<AutoFactory>(
            "auto", std::move(factories),
            " (GLOO_AUTO_LINKS=tcp on this rank does without)");
      });
}

std::shared_ptr<Device> makeTcp(const tcp::attr& wanted, bool lazy) {
  const tcp::attr attr = tcp::CreateDeviceAttr(wanted);
  const bool shm = attr.shm && Environment::fromEnvironment().tcpShm;
  base::DeviceInfo info = describe(attr, lazy);
  return std::make_shared<base::Device>(
      std::move(info), addressOf(attr),
      [&](base::ProgressDomain& domain, base::DeviceInfo& ours) {
        AutoFactory::Factories factories;
        const bool shared = shm && addShm(factories, domain);
        ours.name = "tcp, " + attr.iface +
                    (shared ? ", shared memory on this host" : "");
        factories.push_back(std::make_unique<tcp::TcpFactory>(domain));
        return std::make_unique<AutoFactory>(
            "tcp", std::move(factories),
            " (GLOO_TCP_SHM=0 on this rank does without)");
      });
}

}  // namespace

std::shared_ptr<Device> CreateDevice(const DeviceAttr& attr) {
  return makeAutomatic(attr, false);
}

std::shared_ptr<Device> CreateLazyDevice(const DeviceAttr& attr) {
  return makeAutomatic(attr, true);
}

std::shared_ptr<Device> tcp::CreateDevice(const struct attr& attr) {
  return makeTcp(attr, false);
}

std::shared_ptr<Device> tcp::CreateLazyDevice(const struct attr& attr) {
  return makeTcp(attr, true);
}

}  // namespace transport
GLOO_NAMESPACE_END
