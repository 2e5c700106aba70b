#include "tests/transport/ibverbs/fake_devices.h"

#include <memory>
#include <mutex>

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::mutex mutex;
std::unique_ptr<FakeVerbs> current;

transport::ibverbs::attr loopback() {
  transport::ibverbs::attr attr;
  attr.hostname = "127.0.0.1";
  return attr;
}

}  // namespace

FakeDevices plainDevices() { return {{}, loopback(), false}; }

FakeDevices asynchronousDevices(uint64_t seed) {
  FakeDevices devices = plainDevices();
  devices.config.seed = seed;
  return devices;
}

FakeDevices tinyDevices() {
  FakeDevices devices = asynchronousDevices(3);
  devices.config.maxInlineBytes = 0;
  devices.config.ports[0].maxMessageBytes = 8192;
  devices.config.maxCqe = 64;
  devices.config.maxQpWr = 32;
  devices.config.maxReadsAtATime = 1;
  devices.attr.sendQueue = 8;
  devices.attr.receives = 8;
  devices.attr.eagerBytes = 100;
  devices.attr.callBytes = 0;
  return devices;
}

DeviceMaker fakeVerbsDevices(const FakeDevices& devices) {
  return [devices] {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (current == nullptr) {
        current = std::make_unique<FakeVerbs>(devices.config);
      }
    }
    return devices.lazy ? transport::ibverbs::CreateLazyDevice(devices.attr)
                        : transport::ibverbs::CreateDevice(devices.attr);
  };
}

FakeVerbs& fakeVerbs() {
  std::lock_guard<std::mutex> lock(mutex);
  return *current;
}

std::string mistakesOfFakeVerbs() {
  std::lock_guard<std::mutex> lock(mutex);
  if (current == nullptr) {
    return std::string();
  }
  std::string text;
  if (const std::string alive = current->alive(); !alive.empty()) {
    text += "not destroyed: " + alive + "\n";
  }
  for (const std::string& misuse : current->misuse()) {
    text += misuse + "\n";
  }
  if (const auto count = current->counts().receiverNotReady; count != 0) {
    text += std::to_string(count) + " sends met no posted receive\n";
  }
  current.reset();
  return text;
}

}  // namespace test
GLOO_NAMESPACE_END
