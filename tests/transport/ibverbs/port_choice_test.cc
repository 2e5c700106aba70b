// Which port and GID are chosen, and what is said when none can be.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gloo/common/error.h"
#include "transport/ibverbs/api.h"
#include "transport/ibverbs/ports.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Gid gid(int index, GidType type, const char* address) {
  Gid gid;
  gid.index = index;
  gid.type = type;
  gid.interface = "eth0";
  EXPECT_EQ(inet_pton(AF_INET6, address, gid.raw.raw), 1) << address;
  return gid;
}

// As the kernel makes them: each address as RoCE v1 and as v2.
std::vector<Gid> usualGids() {
  return {gid(0, GidType::kRoce1, "fe80::5054:ff:fe12:3456"),
          gid(1, GidType::kRoce2, "fe80::5054:ff:fe12:3456"),
          gid(2, GidType::kRoce1, "::ffff:10.0.0.7"),
          gid(3, GidType::kRoce2, "::ffff:10.0.0.7"),
          gid(4, GidType::kRoce2, "2001:db8::7")};
}

RdmaDevice roce(const std::string& name,
                ibv_port_state state = IBV_PORT_ACTIVE) {
  RdmaDevice device;
  device.name = name;
  Port port;
  port.attr.state = state;
  port.state = state == IBV_PORT_ACTIVE ? "PORT_ACTIVE (4)" : "PORT_DOWN (1)";
  port.attr.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.gids = usualGids();
  device.ports.push_back(port);
  return device;
}

RdmaDevice infiniband(const std::string& name) {
  RdmaDevice device = roce(name);
  Port& port = device.ports[0];
  port.attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
  port.attr.lid = 17;
  port.gids = {gid(0, GidType::kInfiniBand, "fe80::2:c903:0:1")};
  return device;
}

WantedPort named(const std::string& name, int port = 1, int index = -1) {
  WantedPort wanted;
  wanted.device = name;
  wanted.port = port;
  wanted.gidIndex = index;
  return wanted;
}

template <typename Error>
std::string refusal(const std::vector<RdmaDevice>& devices,
                    const WantedPort& wanted) {
  try {
    choosePort(devices, wanted);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing of that class was thrown";
}

TEST(PortChoice, AnIndexThatNoPathCanNameIsRefused) {
  RdmaDevice device = roce("a");
  std::vector<Gid>& gids = device.ports[0].gids;
  gids[3].index = 256;  // the best one
  EXPECT_EQ(choosePort({device}, {}).gidIndex, 4);
  EXPECT_THAT(refusal<InvalidOperationException>({device}, named("a", 1, 256)),
              AllOf(HasSubstr("256"), HasSubstr("0 to 255")));
  gids = {gids[3]};
  EXPECT_THAT(refusal<IoException>({device}, {}), HasSubstr("has no GID"));
}

TEST(PortChoice, TheFirstDeviceWithAnActivePort) {
  const auto chosen =
      choosePort({roce("a", IBV_PORT_DOWN), roce("b"), roce("c")}, {});
  EXPECT_EQ(chosen.device, "b");
  EXPECT_THAT(chosen.reason, HasSubstr("the first whose port is active"));
}

RdmaDevice without(RdmaDevice device, const std::vector<int>& indices) {
  std::vector<Gid>& gids = device.ports[0].gids;
  std::erase_if(gids, [&](const Gid& gid) {
    return std::find(indices.begin(), indices.end(), gid.index) !=
           indices.end();
  });
  return device;
}

TEST(PortChoice, ADeviceWithoutAGidIsPassedOver) {
  RdmaDevice none = roce("none");
  none.ports[0].gids.clear();
  RdmaDevice unnameable = roce("unnameable");
  for (Gid& gid : unnameable.ports[0].gids) {
    gid.index += 256;
  }
  EXPECT_EQ(choosePort({none, unnameable, roce("c")}, {}).device, "c");
  EXPECT_THAT(refusal<IoException>({none, unnameable}, {}),
              AllOf(HasSubstr("port 1 of none has no GID"),
                    HasSubstr("port 1 of unnameable has no GID")));
  EXPECT_THAT(refusal<IoException>({none, roce("c")}, named("none")),
              HasSubstr("port 1 of none has no GID"));
}

TEST(PortChoice, ADeviceThatLeavesItsSubnetComesFirst) {
  const RdmaDevice local = without(roce("local"), {2, 3, 4});
  const RdmaDevice old = without(roce("old"), {1, 3, 4});  // RoCE v1
  const auto chosen = choosePort({local, old, roce("c"), roce("d")}, {});
  EXPECT_EQ(chosen.device, "c");
  EXPECT_THAT(chosen.reason,
              HasSubstr("the first whose port is active and routable"));
  EXPECT_EQ(choosePort({local, infiniband("ib0")}, {}).device, "ib0");
  EXPECT_EQ(choosePort({local, old}, {}).device, "local");

  RdmaDevice near = without(roce("near"), {2, 3, 4});
  near.node = 1;
  WantedPort wanted;
  wanted.home = 1;
  EXPECT_EQ(choosePort({local, near, roce("c")}, wanted).device, "c");
  EXPECT_EQ(choosePort({local, near}, wanted).device, "near");
}

// EFA and usNIC: active ports, but no reliable connected queue pairs.
TEST(PortChoice, DevicesOfAnotherKindAreLeftOutAndSaidToBe) {
  RdmaDevice efa = roce("efa");
  efa.transport = IBV_TRANSPORT_UNSPECIFIED;
  RdmaDevice usnic = roce("usnic");
  usnic.transport = IBV_TRANSPORT_USNIC_UDP;
  EXPECT_EQ(choosePort({efa, usnic, roce("c")}, {}).device, "c");
  EXPECT_THAT(refusal<IoException>({efa, usnic}, {}),
              AllOf(HasSubstr("efa is a device without reliable connected "
                              "queue pairs"),
                    HasSubstr("usnic is a usNIC device")));
  EXPECT_THAT(refusal<IoException>({efa}, named("efa")),
              HasSubstr("needs InfiniBand or RoCE"));
}

TEST(PortChoice, ADeviceNearTheThreadComesFirstIfItsPortIsActive) {
  std::vector<RdmaDevice> devices = {roce("a"), roce("b", IBV_PORT_DOWN),
                                     roce("c"), roce("d")};
  for (const int i : {1, 2, 3}) {
    devices[static_cast<size_t>(i)].node = 1;
  }
  devices[0].node = 0;
  WantedPort wanted;
  wanted.home = 1;
  const auto chosen = choosePort(devices, wanted);
  EXPECT_EQ(chosen.device, "c");
  EXPECT_THAT(chosen.reason,
              HasSubstr("the first near NUMA node 1 whose port is active"));
  wanted.home = 7;  // near to none
  EXPECT_EQ(choosePort(devices, wanted).device, "a");
  wanted.device = "a";  // a name decides
  wanted.home = 1;
  EXPECT_EQ(choosePort(devices, wanted).device, "a");
}

TEST(PortChoice, OnEthernetARoutableRoce2AddressOfIpv4) {
  const auto chosen = choosePort({roce("a")}, {});
  EXPECT_EQ(chosen.gidIndex, 3);
  EXPECT_THAT(chosen.reason, HasSubstr("3: ::ffff:10.0.0.7, RoCE v2, eth0"));
}

TEST(PortChoice, RoutableIpv6BeforeLinkLocal) {
  RdmaDevice device = roce("a");
  device.ports[0].gids = {gid(1, GidType::kRoce2, "fe80::1"),
                          gid(2, GidType::kRoce2, "::ffff:169.254.3.4"),
                          gid(5, GidType::kRoce2, "2001:db8::7")};
  EXPECT_EQ(choosePort({device}, {}).gidIndex, 5);
}

TEST(PortChoice, ALinkLocalRoce2AddressBeforeRoce1AndSaysWhatItReaches) {
  RdmaDevice device = roce("a");
  device.ports[0].gids = {gid(0, GidType::kRoce1, "::ffff:10.0.0.7"),
                          gid(1, GidType::kRoce2, "fe80::1")};
  const auto chosen = choosePort({device}, {});
  EXPECT_EQ(chosen.gidIndex, 1);
  EXPECT_THAT(chosen.reason, HasSubstr("its own subnet only"));
}

TEST(PortChoice, TheGidThatIsAskedFor) {
  const auto chosen = choosePort({roce("a")}, named("a", 1, 1));
  EXPECT_EQ(chosen.gidIndex, 1);
  EXPECT_THAT(chosen.reason, HasSubstr("as asked for"));
}

TEST(PortChoice, OnInfiniBandTheLid) {
  const auto chosen = choosePort({infiniband("ib0")}, {});
  EXPECT_EQ(chosen.gidIndex, -1);
  EXPECT_EQ(chosen.lid, 17);
}

TEST(PortChoice, OnInfiniBandAGidWhereTheSubnetDemandsIt) {
  RdmaDevice device = infiniband("ib0");
  device.ports[0].attr.flags = IBV_QPF_GRH_REQUIRED;
  EXPECT_EQ(choosePort({device}, {}).gidIndex, 0);
}

// A VLAN's interface has the same link-local address as the one below it.
TEST(PortChoice, AGidIsFoundAgainOnItsOwnInterface) {
  RdmaDevice device = roce("a");
  Port& port = device.ports[0];
  port.gids = {gid(1, GidType::kRoce2, "fe80::7"),
               gid(5, GidType::kRoce2, "fe80::7")};
  port.gids[1].interface = "eth0.100";
  const auto chosen = choosePort({device}, named("a", 1, 5));
  EXPECT_EQ(findGidAgain(chosen, port, true)->index, 5);
  port.gids[1].index = 6;
  EXPECT_EQ(findGidAgain(chosen, port, true)->index, 6);
  port.gids[1].index = 256;  // no path can name it
  EXPECT_EQ(findGidAgain(chosen, port, true), nullptr);
}

TEST(PortChoice, NoDeviceNamesTheRemedy) {
  EXPECT_THAT(refusal<NoDeviceException>({}, {}),
              AllOf(HasSubstr("No RDMA device on this host"),
                    HasSubstr("rdma link add rxe0")));
}

TEST(PortChoice, AnUnknownNameListsTheKnown) {
  EXPECT_THAT(
      refusal<InvalidOperationException>({roce("a"), roce("b")}, named("c")),
      AllOf(HasSubstr("\"c\""), HasSubstr("a; b")));
}

TEST(PortChoice, APortOutOfRangeSaysHowManyThereAre) {
  EXPECT_THAT(refusal<InvalidOperationException>({roce("a")}, named("a", 2)),
              HasSubstr("a has no port 2 (it has 1 to 1)"));
  EXPECT_THAT(refusal<InvalidOperationException>({roce("a")}, named("a", 0)),
              HasSubstr("a has no port 0"));
}

// What cannot be opened may have it, but nobody knows.
TEST(PortChoice, APortThatNoDeviceHasDoesNotExist) {
  RdmaDevice closed = roce("c");
  closed.error = "it cannot be opened: Permission denied";
  closed.ports.clear();
  EXPECT_THAT(refusal<InvalidOperationException>(
                  {roce("a"), roce("b", IBV_PORT_DOWN), closed}, named("", 3)),
              AllOf(HasSubstr("a has no port 3 (it has 1 to 1)"),
                    HasSubstr("b has no port 3"), HasSubstr("c: it cannot")));
  EXPECT_THAT(refusal<IoException>({closed}, named("", 3)),
              HasSubstr("Permission denied"));
  RdmaDevice down = roce("d", IBV_PORT_DOWN);
  down.ports[0].number = 3;
  EXPECT_THAT(refusal<IoException>({roce("a"), down}, named("", 3)),
              AllOf(HasSubstr("a has no port 3"),
                    HasSubstr("port 3 of d is not active")));
}

TEST(PortChoice, APortThatIsDownNamesItsStateAndTheRemedy) {
  EXPECT_THAT(refusal<IoException>({roce("a", IBV_PORT_DOWN)}, named("a")),
              AllOf(HasSubstr("PORT_DOWN (1)"), HasSubstr("ip link set dev")));
}

TEST(PortChoice, WhenNoDeviceCanBeUsedEachSaysWhy) {
  RdmaDevice closed = roce("b");
  closed.error = "it cannot be opened: Permission denied";
  RdmaDevice iwarp = roce("c");
  iwarp.transport = IBV_TRANSPORT_IWARP;
  EXPECT_THAT(
      refusal<IoException>({roce("a", IBV_PORT_DOWN), closed, iwarp}, {}),
      AllOf(HasSubstr("port 1 of a is not active"),
            HasSubstr("b: it cannot be opened: Permission denied"),
            HasSubstr("c is an iWARP device")));
}

TEST(PortChoice, AWrongGidIndexListsTheGids) {
  EXPECT_THAT(refusal<InvalidOperationException>({roce("a")}, named("a", 1, 9)),
              AllOf(HasSubstr("no GID with index 9"),
                    HasSubstr("3: ::ffff:10.0.0.7, RoCE v2, eth0")));
  EXPECT_THAT(
      refusal<InvalidOperationException>({roce("a")}, named("a", 1, -2)),
      HasSubstr("GID index -2"));
}

TEST(PortChoice, AnEthernetPortWithoutGidNamesTheRemedy) {
  RdmaDevice device = roce("a");
  device.ports[0].gids.clear();
  EXPECT_THAT(refusal<IoException>({device}, {}), HasSubstr("ip address add"));
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
