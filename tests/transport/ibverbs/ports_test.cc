// Listing devices through libibverbs' functions, good and failing.
#include "transport/ibverbs/ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "gloo/common/error.h"
#include "tests/support/fake_verbs/fake_verbs.h"
#include "transport/ibverbs/adapter.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using test::FakeCall;
using test::FakePort;
using test::FakeVerbs;
using test::FakeVerbsConfig;
using testing::HasSubstr;

FakeVerbsConfig twoPorts() {
  FakePort down;
  down.state = IBV_PORT_DOWN;
  FakePort infiniband;
  infiniband.ethernet = false;
  infiniband.lid = 7;
  infiniband.addresses = {"fe80::2:c903:0:1"};
  FakeVerbsConfig config;
  config.devices = {"fake0", "fake1"};
  config.ports = {down, infiniband};
  return config;
}

TEST(Ports, ListsDevicesPortsAndTypedGids) {
  const FakeVerbs fake(twoPorts());
  const auto devices = listDevices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1].name, "fake1");
  EXPECT_EQ(devices[1].error, "");
  ASSERT_EQ(devices[1].ports.size(), 2u);

  const Port& ethernet = devices[1].ports[0];
  EXPECT_TRUE(ethernet.ethernet());
  EXPECT_FALSE(ethernet.active());
  EXPECT_EQ(ethernet.state, "PORT_DOWN (1)");
  ASSERT_EQ(ethernet.gids.size(), 4u);
  EXPECT_EQ(ethernet.gids[3].str(), "3: ::ffff:10.0.0.1, RoCE v2");
  EXPECT_TRUE(ethernet.gids[3].routable());
  EXPECT_FALSE(ethernet.gids[1].routable());

  const Port& infiniband = devices[1].ports[1];
  EXPECT_TRUE(infiniband.active());
  EXPECT_EQ(infiniband.attr.lid, 7);
  ASSERT_EQ(infiniband.gids.size(), 1u);
  EXPECT_EQ(infiniband.gids[0].type, GidType::kInfiniBand);
}

TEST(Ports, EveryDeviceIsClosedAgain) {
  const FakeVerbs fake(twoPorts());
  listDevices();
  EXPECT_EQ(fake.alive(), "");
}

TEST(Ports, ADeviceThatCannotBeOpenedKeepsItsNameAndSaysWhy) {
  FakeVerbs fake(twoPorts());
  fake.fail(FakeCall::kOpenDevice, EACCES);
  const auto devices = listDevices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_THAT(devices[0].error, HasSubstr("Permission denied"));
  EXPECT_THAT(devices[0].error, HasSubstr("/dev/infiniband"));
  EXPECT_EQ(devices[1].error, "");
  EXPECT_EQ(choosePort(devices, {"", 2, -1}).device, "fake1");
}

TEST(Ports, APortOrGidsThatCannotBeReadAreThatDevicesError) {
  FakeVerbs fake(twoPorts());
  fake.fail(FakeCall::kQueryPort, EIO, 1, 1);
  EXPECT_THAT(listDevices()[0].error, HasSubstr("its port 2 cannot be read"));
  fake.fail(FakeCall::kQueryGids, EIO);
  EXPECT_THAT(listDevices()[0].error, HasSubstr("its GIDs cannot be read"));
}

TEST(Ports, AListThatCannotBeHadIsAnError) {
  FakeVerbs fake(twoPorts());
  fake.fail(FakeCall::kGetDeviceList, ENOMEM);
  EXPECT_THROW(listDevices(), IoException);
  fake.fail(FakeCall::kGetDeviceList, ENOSYS);  // no RDMA in the kernel
  EXPECT_TRUE(listDevices().empty());
}

TEST(Ports, AnIwarpDeviceIsRecognised) {
  FakeVerbsConfig config;
  config.transport = IBV_TRANSPORT_IWARP;
  const FakeVerbs fake(config);
  EXPECT_EQ(listDevices()[0].foreign(), "an iWARP device");
}

TEST(Ports, AChangeAsksForEachPortOnce) {
  const FakeVerbs fake(twoPorts());
  attr second;
  second.port = 2;
  Adapter adapter(second);
  const uint64_t before = fake.counts().portQueries;
  adapter.refresh();
  EXPECT_EQ(fake.counts().portQueries - before, 2u);
}

TEST(Ports, AChangeIsKnownThoughTheGidsCannotBeRead) {
  FakeVerbs fake(twoPorts());
  attr second;
  second.port = 2;
  Adapter adapter(second);
  FakePort now = twoPorts().ports[1];
  now.lid = 9;
  fake.replacePort(2, now);
  fake.fail(FakeCall::kQueryGids, EIO);
  adapter.refresh();
  EXPECT_EQ(adapter.port().lid, 9);
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
