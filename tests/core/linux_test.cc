// What the kernel says differs from machine to machine, so the tests compare
// it with another view of the same facts, or with itself.
#include "gloo/common/linux.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr int kUnknown = std::numeric_limits<int>::max();

std::set<std::string> namesIn(const char* folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST(Linux, AMatchOfEverythingListsAllDevicesInOrder) {
  const auto all = gloo::pciDevices({0, 0});
  const auto names = namesIn("/sys/bus/pci/devices");
  EXPECT_EQ(all, std::vector<std::string>(names.begin(), names.end()));
}

// All devices whose class code begins so.
std::vector<std::string> ofClass(const std::string& begin) {
  std::vector<std::string> devices;
  for (const auto& device : namesIn("/sys/bus/pci/devices")) {
    std::ifstream file("/sys/bus/pci/devices/" + device + "/class");
    std::string text;
    if (file >> text && text.compare(0, begin.size(), begin) == 0) {
      devices.push_back(device);
    }
  }
  return devices;
}

TEST(Linux, DevicesOfAKindHaveItsClass) {
  const gloo::PCIClassMatch bridges{0x060000, 0xff0000};
  EXPECT_EQ(gloo::pciDevices(bridges), ofClass("0x06"));
  EXPECT_EQ(gloo::pciDevices(gloo::kPCIClassNetwork), ofClass("0x02"));
  EXPECT_EQ(gloo::pciDevices(gloo::kPCIClass3D), ofClass("0x0302"));
}

// Codes of the PCI Code and ID Assignment Specification.
TEST(Linux, KindsAreTheirClassCodes) {
  const auto matches = [](gloo::PCIClassMatch match, int code) {
    return (code & match.mask) == match.value;
  };
  EXPECT_TRUE(matches(gloo::kPCIClass3D, 0x030200));
  EXPECT_FALSE(matches(gloo::kPCIClass3D, 0x030000));  // VGA
  EXPECT_TRUE(matches(gloo::kPCIClassNetwork, 0x020000));
  EXPECT_TRUE(matches(gloo::kPCIClassNetwork, 0x020700));  // InfiniBand
  EXPECT_FALSE(matches(gloo::kPCIClassNetwork, 0x060000));
}

TEST(Linux, NoDeviceHasAClassOutsideTheMask) {
  EXPECT_TRUE(gloo::pciDevices({1, 0}).empty());
}

TEST(Linux, DistanceIsZeroToItselfAndSymmetric) {
  const auto all = gloo::pciDevices({0, 0});
  for (const auto& a : all) {
    EXPECT_EQ(gloo::pciDistance(a, a), 0);
    EXPECT_GT(gloo::pciDistance(a, all.front()), a == all.front() ? -1 : 0);
    EXPECT_EQ(gloo::pciDistance(a, all.front()),
              gloo::pciDistance(all.front(), a));
  }
}

TEST(Linux, UnknownDevicesAreInfinitelyFar) {
  EXPECT_EQ(gloo::pciDistance("ffff:ff:1f.7", "ffff:ff:1f.7"), kUnknown);
  EXPECT_EQ(gloo::pciDistance("", "../../../.."), kUnknown);
}

TEST(Linux, TheLoopbackInterfaceIsNoDeviceAndHasNoSpeed) {
  EXPECT_EQ(gloo::interfaceToBusID("lo"), "");
  EXPECT_EQ(gloo::getInterfaceSpeedByName("lo"), -1);
}

TEST(Linux, InterfacesThatAreNotThereAreUnknown) {
  EXPECT_EQ(gloo::interfaceToBusID("no such interface"), "");
  EXPECT_EQ(gloo::interfaceToBusID("../net/lo"), "");
  EXPECT_EQ(gloo::infinibandToBusID("no such device"), "");
  EXPECT_EQ(gloo::getInterfaceSpeedByName(""), -1);
  EXPECT_EQ(gloo::getInterfaceSpeedByName(".."), -1);
}

TEST(Linux, ModulesAreThoseOfProc) {
  std::set<std::string> expected;
  std::ifstream file("/proc/modules");
  for (std::string name, rest; file >> name && std::getline(file, rest);) {
    expected.insert(name);
  }
  EXPECT_EQ(gloo::kernelModules(), expected);
}

}  // namespace
