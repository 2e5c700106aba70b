#include "gloo/common/linux.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <system_error>

#include "gloo/internal/fork.h"

GLOO_NAMESPACE_BEGIN
namespace {

namespace fs = std::filesystem;

const char* const kPciDevices = "/sys/bus/pci/devices";

// A name that becomes a path component: nothing that leads elsewhere.
bool plain(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos;
}

// Empty if the file cannot be read.
std::string firstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Components of the device's place in the tree; empty if there is none.
std::vector<fs::path> pathInTree(const std::string& busId) {
  std::error_code error;
  if (!plain(busId)) {
    return {};
  }
  const fs::path path = fs::canonical(fs::path(kPciDevices) / busId, error);
  if (error) {
    return {};
  }
  return {path.begin(), path.end()};
}

// "device" links to the bus device of a network or RDMA device, whatever bus
// that is on.
std::string busIdOf(const fs::path& deviceClass, const std::string& name) {
  if (!plain(name)) {
    return std::string();
  }
  std::error_code error;
  const fs::path device = fs::canonical(deviceClass / name / "device", error);
  if (error) {
    return std::string();
  }
  const std::string busId = device.filename().string();
  return fs::exists(fs::path(kPciDevices) / busId, error) ? busId
                                                          : std::string();
}

}  // namespace

const std::set<std::string>& kernelModules() {
  return internal::madeOnce([] {
    std::set<std::string> names;
    std::ifstream file("/proc/modules");
    for (std::string line; std::getline(file, line);) {
      names.insert(line.substr(0, line.find(' ')));
    }
    return names;
  });
}

std::vector<std::string> pciDevices(PCIClassMatch match) {
  std::vector<std::string> result;
  std::error_code error;
  fs::directory_iterator entry(kPciDevices, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::istringstream text(firstLine(entry->path() / "class"));
    int code = 0;
    if (text >> std::hex >> code && (code & match.mask) == match.value) {
      result.push_back(entry->path().filename().string());
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

int pciDistance(const std::string& a, const std::string& b) {
  const auto left = pathInTree(a);
  const auto right = pathInTree(b);
  if (left.empty() || right.empty()) {
    return std::numeric_limits<int>::max();
  }
  const auto [endLeft, endRight] =
      std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return static_cast<int>(std::distance(endLeft, left.end()) +
                          std::distance(endRight, right.end()));
}

std::string interfaceToBusID(const std::string& name) {
  return busIdOf("/sys/class/net", name);
}

std::string infinibandToBusID(const std::string& name) {
  return busIdOf("/sys/class/infiniband", name);
}

int getInterfaceSpeedByName(const std::string& name) {
  if (!plain(name)) {
    return -1;
  }
  const std::string text =
      firstLine(fs::path("/sys/class/net") / name / "speed");
  int speed = -1;
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), speed);
  return result.ec == std::errc() && speed > 0 ? speed : -1;
}

GLOO_NAMESPACE_END
