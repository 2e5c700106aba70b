#include "transport/ibverbs/ports.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/linux.h"
#include "gloo/common/logging.h"
#include "gloo/common/thread_annotations.h"
#include "gloo/internal/fork.h"
#include "transport/base/topology.h"
#include "transport/ibverbs/api.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

in6_addr asAddress(const ibv_gid& gid) {
  in6_addr address{};
  std::memcpy(&address, gid.raw, sizeof(gid.raw));
  return address;
}

GidType gidType(const ibv_gid_entry& entry) {
  switch (entry.gid_type) {
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::kRoce1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::kRoce2;
    default:
      return GidType::kInfiniBand;
  }
}

Gid makeGid(const ibv_gid_entry& entry) {
  Gid gid;
  gid.index = static_cast<int>(entry.gid_index);
  gid.type = gidType(entry);
  gid.raw = entry.gid;
  char name[IF_NAMESIZE];
  if (entry.ndev_ifindex != 0 &&
      if_indextoname(entry.ndev_ifindex, name) != nullptr) {
    gid.interface = name;
  }
  return gid;
}

// These return what failed; empty: nothing.
std::string readGids(ibv_context* context, std::vector<Port>& ports) {
  size_t most = 0;
  for (const Port& port : ports) {
    most += static_cast<size_t>(std::max(port.attr.gid_tbl_len, 0));
  }
  std::vector<ibv_gid_entry> entries(most);
  const ssize_t count =
      api().queryGidTable(context, entries.data(), entries.size());
  if (count < 0) {
    return MakeString("its GIDs cannot be read: ",
                      std::strerror(static_cast<int>(-count)));
  }
  entries.resize(static_cast<size_t>(count));
  for (const ibv_gid_entry& entry : entries) {
    for (Port& port : ports) {
      if (port.number == static_cast<int>(entry.port_num)) {
        port.gids.push_back(makeGid(entry));
      }
    }
  }
  return std::string();
}

std::string readDevice(ibv_device* handle, RdmaDevice& device) {
  const std::unique_ptr<ibv_context, decltype(api().closeDevice)> context(
      api().openDevice(handle), api().closeDevice);
  if (context == nullptr) {
    return MakeString("it cannot be opened: ", std::strerror(errno),
                      " (may this user read and write /dev/infiniband/*?)");
  }
  const int error = api().queryDevice(context.get(), &device.attr);
  if (error != 0) {
    return MakeString("it cannot be queried: ", std::strerror(error));
  }
  return readPorts(context.get(), device);
}

// The kernel copies the parent's registered pages at a fork, or, where it is
// too old for that, the library keeps them from the child: those that are
// registered from now on, each by two calls of madvise(2), and so it would do,
// once told to, where the kernel copies as well.
void prepareForForks() {
  struct Preparation {
    Mutex mutex;  // of two calls at once libibverbs would lose what one notes
    bool done = false;
  };
  auto& preparation = internal::instanceOfProcess<Preparation>();
  const MutexLock lock(preparation.mutex);
  if (std::exchange(preparation.done, true)) {
    return;
  }
  const bool kernelCopies = api().isForkInitialized != nullptr &&
                            api().isForkInitialized() == IBV_FORK_UNNEEDED;
  if (const int error = kernelCopies ? 0 : api().forkInit(); error != 0) {
    GLOO_WARN("ibv_fork_init: ", std::strerror(error),
              ": a fork of this process may break its transfers");
  }
}

}  // namespace

const char* name(GidType type) {
  const char* const names[] = {"InfiniBand", "RoCE v1", "RoCE v2"};
  return names[static_cast<size_t>(type)];
}

bool Gid::ipv4() const {
  const in6_addr address = asAddress(raw);
  return IN6_IS_ADDR_V4MAPPED(&address);
}

bool Gid::routable() const {
  const in6_addr address = asAddress(raw);
  if (ipv4()) {  // 169.254.0.0/16 is link-local, 127.0.0.0/8 loopback
    return raw.raw[12] != 127 && !(raw.raw[12] == 169 && raw.raw[13] == 254);
  }
  return !IN6_IS_ADDR_LINKLOCAL(&address) && !IN6_IS_ADDR_LOOPBACK(&address);
}

bool Gid::isSame(const Gid& other) const {
  return type == other.type && interface == other.interface &&
         std::memcmp(raw.raw, other.raw.raw, sizeof(raw.raw)) == 0;
}

std::string Gid::str() const {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(AF_INET6, raw.raw, text, sizeof(text));
  std::string all = MakeString(index, ": ", text, ", ", name(type));
  return interface.empty() ? all : all + ", " + interface;
}

std::string RdmaDevice::foreign() const {
  switch (transport) {
    case IBV_TRANSPORT_IB:
      return std::string();
    case IBV_TRANSPORT_IWARP:
      return "an iWARP device";
    case IBV_TRANSPORT_USNIC:
    case IBV_TRANSPORT_USNIC_UDP:
      return "a usNIC device";
    default:
      return "a device without reliable connected queue pairs (as EFA)";
  }
}

std::string readPorts(ibv_context* context, RdmaDevice& device) {
  for (int number = 1; number <= device.attr.phys_port_cnt; number++) {
    Port port;
    port.number = number;
    const int error =
        api().queryPort(context, static_cast<uint8_t>(number), &port.attr);
    if (error != 0) {
      return MakeString("its port ", number,
                        " cannot be read: ", std::strerror(error));
    }
    port.state = api().portStateStr(port.attr.state);
    device.ports.push_back(std::move(port));
  }
  return readGids(context, device.ports);
}

std::vector<RdmaDevice> listDevices() {
  prepareForForks();
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(api().freeDeviceList)> list(
      api().getDeviceList(&count), api().freeDeviceList);
  if (list == nullptr && errno != ENOSYS) {  // ENOSYS: no RDMA in this kernel
    GLOO_THROW_IO_EXCEPTION("The RDMA devices cannot be listed: ",
                            std::strerror(errno));
  }
  std::vector<RdmaDevice> devices;
  for (int i = 0; list != nullptr && i < count; i++) {
    ibv_device* const handle = list.get()[i];
    RdmaDevice device;
    device.name = api().getDeviceName(handle);
    device.node =
        base::Topology::instance().nodeOfDevice(infinibandToBusID(device.name));
    device.transport = handle->transport_type;
    device.error = readDevice(handle, device);
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
