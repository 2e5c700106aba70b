// What gloo_info says of RDMA devices, over devices in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/fake_verbs/fake_verbs.h"
#include "tools/gloo_info/reports.h"

namespace {

using gloo::test::FakePort;
using gloo::test::FakeVerbs;
using gloo::test::FakeVerbsConfig;
using testing::HasSubstr;

FakeVerbsConfig twoPorts() {
  FakePort infiniband;
  infiniband.ethernet = false;
  infiniband.lid = 7;
  infiniband.state = IBV_PORT_DOWN;
  FakeVerbsConfig config;
  config.ports = {FakePort{}, infiniband};
  return config;
}

TEST(RdmaReport, NamesDevicesPortsGidsAndTheChoice) {
  const FakeVerbs fake(twoPorts());
  std::ostringstream out;
  EXPECT_TRUE(gloo_info::printRdma(out, {}));
  EXPECT_THAT(out.str(), HasSubstr("  fake0: firmware \"fake\""));
  EXPECT_THAT(out.str(),
              HasSubstr("port 1: PORT_ACTIVE (4), Ethernet, MTU 4096"));
  EXPECT_THAT(out.str(), HasSubstr("GID 3: ::ffff:10.0.0.1, RoCE v2\n"));
  EXPECT_THAT(out.str(), HasSubstr("port 2: PORT_DOWN (1), InfiniBand"));
  EXPECT_THAT(out.str(), HasSubstr("LID 7"));
  EXPECT_THAT(out.str(), HasSubstr("an ibverbs device uses: fake0 port 1: the "
                                   "first whose port is active, of fake0; GID "
                                   "3: ::ffff:10.0.0.1, RoCE v2"));
}

TEST(RdmaReport, SaysWhyAWantedPortCannotBeUsed) {
  const FakeVerbs fake(twoPorts());
  std::ostringstream out;
  EXPECT_FALSE(gloo_info::printRdma(out, {"fake0", 2, -1}));
  EXPECT_THAT(out.str(), HasSubstr("cannot be made"));
  EXPECT_THAT(out.str(), HasSubstr("does a subnet manager"));
}

TEST(RdmaReport, SaysThatADeviceIsOfAnotherKind) {
  FakeVerbsConfig config;
  config.transport = IBV_TRANSPORT_UNSPECIFIED;
  const FakeVerbs fake(config);
  std::ostringstream out;
  EXPECT_FALSE(gloo_info::printRdma(out, {}));
  EXPECT_THAT(out.str(), HasSubstr("fake0: a device without reliable connected "
                                   "queue pairs (as EFA), unusable, firmware"));
  EXPECT_THAT(out.str(), HasSubstr("this transport needs InfiniBand or RoCE"));
}

}  // namespace
