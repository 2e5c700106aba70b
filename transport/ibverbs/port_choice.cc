#include <algorithm>
#include <cstring>
#include <utility>

#include "gloo/common/error.h"
#include "transport/ibverbs/api.h"
#include "transport/ibverbs/ports.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

constexpr const char* kNoDevice =
    "No RDMA device on this host. Is its driver loaded (rdma link; ls "
    "/sys/class/infiniband), and in a container, is /dev/infiniband passed in? "
    "Soft-RoCE works over any network interface: modprobe rdma_rxe; rdma link "
    "add rxe0 type rxe netdev eth0";

template <typename List, typename Describe>
std::string join(const List& list, Describe describe) {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) {
      text += "; ";
    }
    text += describe(item);
  }
  return text.empty() ? "none" : text;
}

std::string names(const std::vector<RdmaDevice>& devices) {
  return join(devices, [](const RdmaDevice& device) { return device.name; });
}

const Port* findPort(const RdmaDevice& device, int number) {
  for (const Port& port : device.ports) {
    if (port.number == number) {
      return &port;
    }
  }
  return nullptr;
}

// A path names the index of its GID in 8 bits.
constexpr int kMaxGidIndex = 255;

// The higher, the better for RoCE; below 0: it cannot be used.
int rank(const Gid& gid) {
  if (gid.index > kMaxGidIndex) {
    return -1;
  }
  const int version = gid.type == GidType::kRoce2 ? 4 : 0;
  return version + (gid.routable() ? 2 : 0) + (gid.ipv4() ? 1 : 0);
}

// The first of the best; null: there is none.
template <typename Allowed>
const Gid* bestGid(const Port& port, Allowed allowed) {
  const Gid* best = nullptr;
  for (const Gid& gid : port.gids) {
    if (rank(gid) >= 0 && allowed(gid) &&
        (best == nullptr || rank(gid) > rank(*best))) {
      best = &gid;
    }
  }
  return best;
}

bool any(const Gid&) { return true; }

const char* merit(const Gid& gid) {
  if (gid.type != GidType::kRoce2) {
    return "there is no RoCE v2 GID, so it reaches its own subnet only";
  }
  return gid.routable() ? "the first RoCE v2 GID with a routable address, IPv4 "
                          "before IPv6"
                        : "no RoCE v2 GID has a routable address, so it "
                          "reaches its own subnet only";
}

void takeGid(ChosenPort& chosen, const Gid& gid, const std::string& why) {
  chosen.gidIndex = gid.index;
  chosen.gid = gid;
  chosen.reason += MakeString("; GID ", gid.str(), ": ", why);
}

const Gid* gidAt(const Port& port, int index) {
  for (const Gid& gid : port.gids) {
    if (gid.index == index) {
      return &gid;
    }
  }
  return nullptr;
}

void takeWantedGid(ChosenPort& chosen, const Port& port, int index) {
  if (const Gid* gid = gidAt(port, index)) {
    return takeGid(chosen, *gid, "as asked for");
  }
  GLOO_THROW_INVALID_OPERATION_EXCEPTION(
      "Port ", port.number, " of ", chosen.device, " has no GID with index ",
      index,
      ". It has: ", join(port.gids, [](const Gid& gid) { return gid.str(); }),
      ". Index -1 lets the library choose");
}

void chooseAddress(ChosenPort& chosen, const Port& port, int gidIndex) {
  chosen.lid = port.attr.lid;
  if (gidIndex >= 0) {
    takeWantedGid(chosen, port, gidIndex);
  } else if (port.ethernet()) {
    const Gid& best = *bestGid(port, &any);  // it is usable
    takeGid(chosen, best, merit(best));
  } else if ((port.attr.flags & IBV_QPF_GRH_REQUIRED) != 0) {
    takeWantedGid(chosen, port, 0);
  } else {
    if (const Gid* const first = gidAt(port, 0)) {
      chosen.gid = *first;
    }
    chosen.reason += MakeString("; InfiniBand: addressed by LID ", chosen.lid);
  }
}

const RdmaDevice& namedDevice(const std::vector<RdmaDevice>& devices,
                              const WantedPort& wanted) {
  for (const RdmaDevice& device : devices) {
    if (device.name != wanted.device) {
      continue;
    }
    if (device.error.empty() && findPort(device, wanted.port) == nullptr) {
      GLOO_THROW_INVALID_OPERATION_EXCEPTION("RDMA device: ",
                                             whyUnusable(device, wanted.port));
    }
    if (const std::string why = whyUnusable(device, wanted.port);
        !why.empty()) {
      GLOO_THROW_IO_EXCEPTION("RDMA device: ", why);
    }
    return device;
  }
  GLOO_THROW_INVALID_OPERATION_EXCEPTION("No RDMA device is called \"",
                                         wanted.device,
                                         "\". There are: ", names(devices));
}

bool isNear(const RdmaDevice& device, const WantedPort& wanted) {
  return wanted.home >= 0 && device.node == wanted.home;
}

// Whether peers on other subnets may reach it.
bool isRoutable(const RdmaDevice& device, const WantedPort& wanted) {
  const Port& port = *findPort(device, wanted.port);
  return !port.ethernet() ||
         bestGid(port, [](const Gid& gid) {
           return gid.type == GidType::kRoce2 && gid.routable();
         }) != nullptr;
}

// Of those that could be opened, if there are any.
bool isOnNone(const std::vector<RdmaDevice>& devices, int port) {
  const auto opened = [](const RdmaDevice& d) { return d.error.empty(); };
  return std::any_of(devices.begin(), devices.end(), opened) &&
         std::none_of(
             devices.begin(), devices.end(), [&](const RdmaDevice& device) {
               return opened(device) && findPort(device, port) != nullptr;
             });
}

const RdmaDevice& firstUsable(const std::vector<RdmaDevice>& devices,
                              const WantedPort& wanted) {
  const auto merit = [&](const RdmaDevice& device) {
    return std::pair(isRoutable(device, wanted), isNear(device, wanted));
  };
  const RdmaDevice* first = nullptr;
  for (const RdmaDevice& device : devices) {
    if (whyUnusable(device, wanted.port).empty() &&
        (first == nullptr || merit(device) > merit(*first))) {
      first = &device;
    }
  }
  if (first == nullptr) {
    const std::string why = join(devices, [&](const RdmaDevice& device) {
      return whyUnusable(device, wanted.port);
    });
    if (isOnNone(devices, wanted.port)) {
      GLOO_THROW_INVALID_OPERATION_EXCEPTION("No RDMA device has port ",
                                             wanted.port, ": ", why);
    }
    GLOO_THROW_IO_EXCEPTION("No RDMA device can be used: ", why);
  }
  return *first;
}

// Another one would do, but its address leaves no subnet.
bool addressDecides(const std::vector<RdmaDevice>& devices,
                    const RdmaDevice& chosen, const WantedPort& wanted) {
  return isRoutable(chosen, wanted) &&
         std::any_of(devices.begin(), devices.end(),
                     [&](const RdmaDevice& device) {
                       return whyUnusable(device, wanted.port).empty() &&
                              !isRoutable(device, wanted);
                     });
}

}  // namespace

std::string whyUnusable(const RdmaDevice& device, int number) {
  if (!device.error.empty()) {
    return MakeString(device.name, ": ", device.error);
  }
  if (const std::string kind = device.foreign(); !kind.empty()) {
    return MakeString(device.name, " is ", kind,
                      "; this transport needs InfiniBand or RoCE");
  }
  const Port* port = findPort(device, number);
  if (port == nullptr) {
    return MakeString(device.name, " has no port ", number, " (it has 1 to ",
                      device.ports.size(), ")");
  }
  if (!port->active()) {
    return MakeString(
        "port ", number, " of ", device.name, " is not active but ",
        port->state,
        port->ethernet()
            ? ": is its network interface up (ip link set dev NAME up) and its "
              "cable plugged in?"
            : ": is its cable plugged in, and does a subnet manager (opensm) "
              "run?");
  }
  if (port->ethernet() && bestGid(*port, &any) == nullptr) {
    return MakeString("port ", number, " of ", device.name,
                      " has no GID: give its network interface an address (ip "
                      "address add 10.0.0.1/24 dev NAME)");
  }
  return std::string();
}

ChosenPort choosePort(const std::vector<RdmaDevice>& devices,
                      const WantedPort& wanted) {
  if (devices.empty()) {
    throw NoDeviceException(GLOO_ERROR_MSG(kNoDevice));
  }
  if (wanted.gidIndex < -1 || wanted.gidIndex > kMaxGidIndex) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("GID index ", wanted.gidIndex,
                                           ": an index is 0 to ", kMaxGidIndex,
                                           "; -1 lets the library choose");
  }
  const bool named = !wanted.device.empty();
  const RdmaDevice& device =
      named ? namedDevice(devices, wanted) : firstUsable(devices, wanted);
  ChosenPort chosen;
  chosen.device = device.name;
  chosen.port = wanted.port;
  chosen.reason = MakeString(
      device.name, " port ", wanted.port, ": ",
      named
          ? "as asked for"
          : MakeString(
                "the first ",
                isNear(device, wanted)
                    ? MakeString("near NUMA node ", wanted.home, " ")
                    : "",
                "whose port is active",
                addressDecides(devices, device, wanted) ? " and routable" : "",
                ", of ", names(devices)));
  chooseAddress(chosen, *findPort(device, wanted.port), wanted.gidIndex);
  return chosen;
}

const Gid* findGidAgain(const ChosenPort& first, const Port& now,
                        bool indexWanted) {
  const Gid& old = first.gid;
  const Gid* const there = gidAt(now, first.gidIndex);
  if (there != nullptr && there->isSame(old)) {
    return there;
  }
  const auto same = [&old](const Gid& gid) { return gid.isSame(old); };
  if (const Gid* found = bestGid(now, same)) {
    return found;
  }
  if (indexWanted || !now.ethernet()) {
    return there;
  }
  return bestGid(now, [&](const Gid& gid) {
    return gid.type == old.type && (gid.routable() || !old.routable());
  });
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
