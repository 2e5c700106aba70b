#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <sstream>

#include "gloo/common/logging.h"
#include "gloo/internal/channel.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/transport/unbound_buffer.h"
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

// In the device's text there is what it may use, in the log what it does.
TEST(ChoiceTest, TheChoiceForEachPeerIsLogged) {
  const LogLevel before = logLevel();
  setLogLevel(LogLevel::INFO);
  testing::internal::CaptureStderr();
  std::atomic<int> made{0};
  spawn(
      Mode::kThreads, [&] { return makeDevice(made++ != 0); }, 3,
      [](const std::shared_ptr<transport::Context>&) {});
  const std::string log = testing::internal::GetCapturedStderr();
  setLogLevel(before);
  int overShm = 0;
  int overTcp = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    overShm += line.find(" over shm process ") != std::string::npos ? 1 : 0;
    overTcp += line.find(" over tcp ") != std::string::npos ? 1 : 0;
  }
  // Both ends of each pair.
  EXPECT_EQ(overShm, 2) << log;
  EXPECT_EQ(overTcp, 4) << log;
}

TEST(ChoiceTest, TheDeviceSaysWhatItMayUse) {
  EXPECT_NE(makeDevice(true)->str().find("auto, shm or "), std::string::npos);
  EXPECT_NE(makeDevice(true)->str().find("tcp, lo"), std::string::npos);
  EXPECT_EQ(makeDevice(false)->str().find("shm"), std::string::npos);
}

std::shared_ptr<transport::Device> makeTcp(bool shm) {
  transport::tcp::attr attr("127.0.0.1");
  attr.shm = shm;
  return transport::tcp::CreateDevice(attr);
}

TEST(ChoiceTest, ATcpDeviceSharesMemoryOnOneHost) {
  EXPECT_NE(makeTcp(true)->str().find("tcp, lo, shared memory on this host"),
            std::string::npos);
  for (const Mode mode : {Mode::kThreads, Mode::kProcesses}) {
    spawn(
        mode, [] { return makeTcp(true); }, 2,
        [](const std::shared_ptr<transport::Context>& context) {
          EXPECT_EQ(linkTo(*context, 1 - context->rank), "shm");
        });
  }
}

// With one that uses sockets only, too.
TEST(ChoiceTest, ATcpDeviceWithoutSharedMemoryUsesSockets) {
  EXPECT_EQ(makeTcp(false)->str().find("shared memory"), std::string::npos);
  std::atomic<int> made{0};
  spawn(
      Mode::kThreads, [&] { return makeTcp(made++ != 0); }, 2,
      [](const std::shared_ptr<transport::Context>& context) {
        EXPECT_EQ(linkTo(*context, 1 - context->rank), "tcp");
      });
}

TEST(ChoiceTest, TheEnvironmentSwitchesSharedMemoryOff) {
  ::setenv("GLOO_TCP_SHM", "0", 1);
  ::setenv("GLOO_AUTO_LINKS", "tcp", 1);
  EXPECT_EQ(makeTcp(true)->str().find("shared memory"), std::string::npos);
  EXPECT_NE(makeDevice(true)->str().find("auto, tcp, lo"), std::string::npos);
  ::unsetenv("GLOO_TCP_SHM");
  ::unsetenv("GLOO_AUTO_LINKS");
}

TEST(ChoiceTest, ALazyPairSharesMemoryFromItsFirstUse) {
  for (const bool tcp : {false, true}) {
    spawn(
        Mode::kThreads,
        [&] {
          transport::DeviceAttr attr;
          attr.tcp.hostname = "127.0.0.1";
          return tcp ? transport::tcp::CreateLazyDevice(attr.tcp)
                     : transport::CreateLazyDevice(attr);
        },
        3,
        [](const std::shared_ptr<transport::Context>& context) {
          const int next = (context->rank + 1) % 3;
          char out = 'x';
          char in = 0;
          auto buffer = context->createUnboundBuffer(&in, 1);
          auto sent = context->createUnboundBuffer(&out, 1);
          buffer->recv((context->rank + 2) % 3, 1);
          sent->send(next, 1);
          EXPECT_TRUE(sent->waitSend());
          EXPECT_TRUE(buffer->waitRecv());
          EXPECT_EQ(in, 'x');
          EXPECT_EQ(linkTo(*context, next), "shm");
        });
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
