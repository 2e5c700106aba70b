// What devices say of the hardware that they use.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gloo/transport/auto/device.h"
#include "gloo/transport/tcp/device.h"
#include "tests/support/namespaces.h"
#include "tests/support/transports.h"
#if GLOO_HAVE_TRANSPORT_IBVERBS
#include "gloo/transport/ibverbs/device.h"
#include "tests/support/fake_verbs/fake_verbs.h"
#endif

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

namespace fs = std::filesystem;

// Empty folders in place of what the kernel says; false, with errno: they may
// not be had.
bool hideDevices() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/sys/class", "tmpfs", 0, nullptr) == 0 &&
         ::mount("none", "/sys/bus", "tmpfs", 0, nullptr) == 0;
}

std::string whyWithoutHiding() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(hideDevices() ? 0 : errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0
             ? ""
             : std::string("mount: ") + std::strerror(WEXITSTATUS(status));
}

// Of class "net" or "infiniband".
void addDevice(const std::string& kind, const std::string& name,
               const std::string& busId, const std::string& speed = "") {
  const fs::path bus = fs::path("/sys/bus/pci/devices") / busId;
  const fs::path folder = fs::path("/sys/class") / kind / name;
  fs::create_directories(bus);
  fs::create_directories(folder);
  fs::create_symlink(bus, folder / "device");
  std::ofstream(folder / "speed") << speed << "\n";
}

transport::DeviceAttr onLoopback() {
  transport::DeviceAttr wanted;
  wanted.tcp.hostname = "127.0.0.1";
  return wanted;
}

class HardwareTest : public testing::Test {
 protected:
  void SetUp() override { SKIP_IF_MISSING("namespaces", whyWithoutHiding()); }

  // As if there were no devices but those that `body` adds.
  static void run(const std::function<void()>& body) {
    inChild([&] {
      ASSERT_TRUE(hideDevices()) << std::strerror(errno);
      body();
    });
  }
};

TEST_F(HardwareTest, ADeviceHasTheBusIdAndTheSpeedOfItsInterface) {
  run([] {
    addDevice("net", "lo", "0000:3b:00.0", "25000");
    auto wanted = onLoopback();
    wanted.rdma = false;
    for (const auto& device : {transport::tcp::CreateDevice("127.0.0.1"),
                               transport::tcp::CreateLazyDevice("127.0.0.1"),
                               transport::CreateDevice(wanted),
                               transport::CreateLazyDevice(wanted)}) {
      EXPECT_EQ(device->getPCIBusID(), "0000:3b:00.0") << device->str();
      EXPECT_EQ(device->getInterfaceSpeed(), 25000) << device->str();
    }
  });
}

// A kernel says -1 of an interface that is down or virtual.
TEST_F(HardwareTest, AnUnknownSpeedIsZero) {
  run([] {
    addDevice("net", "lo", "0000:3b:00.0", "-1");
    const auto device = transport::tcp::CreateDevice("127.0.0.1");
    EXPECT_EQ(device->getPCIBusID(), "0000:3b:00.0");
    EXPECT_EQ(device->getInterfaceSpeed(), 0);
  });
}

TEST_F(HardwareTest, WhatIsNoPciDeviceHasNoBusId) {
  run([] {
    const auto device = transport::tcp::CreateDevice("127.0.0.1");
    EXPECT_EQ(device->getPCIBusID(), "");
    EXPECT_EQ(device->getInterfaceSpeed(), 0);
  });
}

#if GLOO_HAVE_TRANSPORT_IBVERBS
// EDR, of four lanes. The interface at which peers greet each other is another.
TEST_F(HardwareTest, AnRdmaDeviceHasThoseOfItsPort) {
  run([] {
    FakeVerbsConfig config;
    config.ports[0].speed = 32;
    config.ports[0].width = 2;
    const FakeVerbs verbs(config);
    addDevice("net", "lo", "0000:3b:00.0", "25000");
    addDevice("infiniband", "fake0", "0000:5e:00.1");
    transport::ibverbs::attr port;
    port.hostname = "127.0.0.1";
    for (const auto& device : {transport::CreateDevice(onLoopback()),
                               transport::ibverbs::CreateDevice(port)}) {
      EXPECT_EQ(device->getPCIBusID(), "0000:5e:00.1") << device->str();
      EXPECT_EQ(device->getInterfaceSpeed(), 4 * 25781) << device->str();
    }
  });
}
#endif

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
