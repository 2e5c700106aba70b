#include <gtest/gtest.h>

#include <atomic>

#include "gloo/internal/channel.h"
#include "gloo/transport/auto/device.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::shared_ptr<transport::Device> makeDevice(bool shm) {
  transport::DeviceAttr attr;
  attr.tcp.hostname = "127.0.0.1";
  attr.shm = shm;
  return transport::CreateDevice(attr);
}

std::string linkTo(transport::Context& context, int peer) {
  return dynamic_cast<internal::Channel&>(context).linkName(peer);
}

TEST(ChoiceTest, RanksOfOneHostShareMemory) {
  for (const Mode mode : {Mode::kThreads, Mode::kProcesses}) {
    spawn(
        mode, [] { return makeDevice(true); }, 3,
        [](const std::shared_ptr<transport::Context>& context) {
          EXPECT_EQ(linkTo(*context, (context->rank + 1) % 3), "shm");
        });
  }
}

// One device of three has no shared memory: its pairs are over TCP, those of
// the others are not.
TEST(ChoiceTest, APairWithoutSharedMemoryUsesTcp) {
  std::atomic<int> made{0};
  std::atomic<int> overTcp{0};
  std::atomic<int> overShm{0};
  spawn(
      Mode::kThreads, [&] { return makeDevice(made++ != 0); }, 3,
      [&](const std::shared_ptr<transport::Context>& context) {
        for (int peer = 0; peer < 3; peer++) {
          if (peer != context->rank) {
            const std::string link = linkTo(*context, peer);
            overTcp += link == "tcp";
            overShm += link == "shm";
          }
        }
      });
  EXPECT_EQ(overTcp, 4);
  EXPECT_EQ(overShm, 2);
}

TEST(ChoiceTest, TheDeviceSaysWhatItMayUse) {
  EXPECT_NE(makeDevice(true)->str().find("shm or tcp, lo"), std::string::npos);
  EXPECT_EQ(makeDevice(false)->str().find("shm"), std::string::npos);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
