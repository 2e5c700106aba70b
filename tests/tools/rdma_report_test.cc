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

TEST(RdmaReport, SaysWhatADeviceNeedNotHaveAndWhatIsUsedOfIt) {
  FakeVerbsConfig config;
  config.maxInlineBytes = 100;
  config.maxReadsAtATime = 2;
  config.ports[0].maxMessageBytes = 1 << 23;
  {
    const FakeVerbs fake(config);
    std::ostringstream out;
    EXPECT_TRUE(gloo_info::printRdma(out, {}));
    EXPECT_THAT(out.str(), HasSubstr("offers: no shared receive queues, "
                                     "atomics: none, 2 reads answered and 2 "
                                     "asked at a time\n"));
    EXPECT_THAT(out.str(), HasSubstr("inline: 64 bytes of a request, of 256 "
                                     "wanted: the device takes no more\n"));
    EXPECT_THAT(out.str(), HasSubstr("messages: split at 8388608 bytes, the "
                                     "less of the port's 8388608 and "
                                     "maxMessageBytes, 67108864\n"));
    EXPECT_THAT(out.str(), HasSubstr("receives: 64 of each pair's own"));
    EXPECT_THAT(out.str(), HasSubstr("gets: reads by the device, 2 at a time"));
    EXPECT_THAT(out.str(), HasSubstr("atomics: not used"));
    EXPECT_EQ(fake.alive(), "");
  }
  config.maxSrq = 12;
  config.atomics = IBV_ATOMIC_GLOB;
  config.maxReadsAtATime = 0;
  const FakeVerbs fake(config);
  std::ostringstream out;
  EXPECT_TRUE(gloo_info::printRdma(out, {}));
  EXPECT_THAT(out.str(), HasSubstr("12 shared receive queues of 4096 receives, "
                                   "atomics: also with the processors"));
  EXPECT_THAT(out.str(), HasSubstr("gets: in frames"));
}

TEST(RdmaReport, SaysThatNoQueuePairCanBeMade) {
  FakeVerbs fake;
  fake.fail(gloo::test::FakeCall::kCreateQp, ENOMEM, 99);
  std::ostringstream out;
  EXPECT_FALSE(gloo_info::printRdma(out, {}));
  EXPECT_THAT(out.str(), HasSubstr("cannot be made: "));
  EXPECT_THAT(out.str(), HasSubstr("makes no queue pair"));
}

TEST(RdmaReport, SaysWhyAWantedPortCannotBeUsed) {
  const FakeVerbs fake(twoPorts());
  std::ostringstream out;
  EXPECT_FALSE(gloo_info::printRdma(out, {"fake0", 2, -1}));
  EXPECT_THAT(out.str(), HasSubstr("cannot be made"));
  EXPECT_THAT(out.str(), HasSubstr("does a subnet manager"));
}

TEST(RdmaReport, SaysThatAPortHasNoGid) {
  FakeVerbsConfig config;
  config.ports[0].addresses.clear();
  const FakeVerbs fake(config);
  std::ostringstream out;
  EXPECT_FALSE(gloo_info::printRdma(out, {}));
  EXPECT_THAT(out.str(), HasSubstr("      cannot be used: port 1 of fake0 has "
                                   "no GID: give its network interface"));
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
