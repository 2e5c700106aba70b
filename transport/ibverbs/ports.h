// The RDMA devices of this host with their ports and GIDs, and the choice among
// them. Thread-safe.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

enum class GidType : uint8_t { kInfiniBand, kRoce1, kRoce2 };
const char* name(GidType type);  // "RoCE v2"

struct Gid {
  int index = 0;
  GidType type = GidType::kInfiniBand;
  ibv_gid raw{};
  std::string interface;  // "eth0"; empty if unknown

  bool ipv4() const;      // an IPv4 address in IPv6's form
  bool routable() const;  // other than link-local: leaves its subnet
  // Whatever their indices. Interfaces of one port may have the same address (a
  // VLAN's has that of the one below it), and their packets differ.
  bool isSame(const Gid& other) const;
  std::string str() const;
};

struct Port {
  int number = 1;
  ibv_port_attr attr{};
  std::string state;  // in words: "PORT_ACTIVE (4)"
  std::vector<Gid> gids;

  bool active() const { return attr.state == IBV_PORT_ACTIVE; }
  bool ethernet() const { return attr.link_layer == IBV_LINK_LAYER_ETHERNET; }
};

struct RdmaDevice {
  std::string name;
  int node = -1;  // the NUMA node that it is near to; -1: unknown
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  ibv_device_attr attr{};
  std::vector<Port> ports;
  std::string error;  // why it cannot be used; the rest is then unknown

  // What kind of device it is, if its queue pairs are not InfiniBand's, which
  // RoCE has too: "an iWARP device"; else empty.
  std::string foreign() const;
};

// In libibverbs' order; none when there are none. Throws IoException when the
// library is missing or the devices cannot be listed.
std::vector<RdmaDevice> listDevices();

// Reads the ports of an opened device, whose attr is there, with their GIDs.
// Returns what failed; empty: nothing.
std::string readPorts(ibv_context* context, RdmaDevice& device);

// Why this port cannot carry a queue pair now, and the remedy; empty: it can.
std::string whyUnusable(const RdmaDevice& device, int port);

struct WantedPort {
  // Empty: the first whose port is usable; one that leaves its subnet before
  // one that does not, then near ones.
  std::string device;
  int port = 1;
  int gidIndex = -1;  // -1: choose
  int home = -1;      // the NUMA node of who will use it; -1: unknown
};

struct ChosenPort {
  std::string device;
  int port = 1;
  // -1: no global routing header; addressed by LID, on InfiniBand only.
  int gidIndex = -1;
  Gid gid;           // if gidIndex >= 0; else the first, which tells the subnet
  uint16_t lid = 0;  // InfiniBand
  std::string reason;  // for people: what was chosen among what, and why
};

// On Ethernet a RoCE v2 GID that leaves its subnet, IPv4 before IPv6; else a
// link-local one; else RoCE v1. On InfiniBand the LID, unless a GID is wanted
// or the subnet demands it. Throws, naming what there is and what to do:
// NoDeviceException when there is none, InvalidOperationException for a device,
// port or GID that does not exist, IoException when none can be used now.
ChosenPort choosePort(const std::vector<RdmaDevice>& devices,
                      const WantedPort& wanted);

// The GID for queue pairs to come of a port that has changed since `first` was
// chosen (gidIndex >= 0), of `now`'s: the same one, where it was if it is
// there, else whatever its index is by now. Without it, what is at the index if
// that was asked for, or on InfiniBand; else the best one that reaches as far,
// of the same version of RoCE, as the peers have that. Null: there is none.
const Gid* findGidAgain(const ChosenPort& first, const Port& now,
                        bool indexWanted);

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
