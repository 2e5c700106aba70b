#include "tests/support/transports.h"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#if GLOO_HAVE_TRANSPORT_IBVERBS
#include "gloo/transport/ibverbs/device.h"
#endif

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

// GLOO_TEST_INTERFACE, where ranks are on several hosts.
transport::tcp::attr loopback() {
  transport::tcp::attr attr("127.0.0.1");
  if (const char* interface = std::getenv("GLOO_TEST_INTERFACE")) {
    attr.iface = interface;
  }
  return attr;
}

transport::tcp::attr loopbackWithoutShm() {
  transport::tcp::attr attr = loopback();
  attr.shm = false;
  return attr;
}

std::shared_ptr<transport::Device> twoCopies() {
  transport::shm::attr attr;
  attr.singleCopy = false;
  return transport::shm::CreateDevice(attr);
}

std::shared_ptr<transport::Device> automatic() {
  transport::DeviceAttr attr;
  attr.tcp = loopback();
  return transport::CreateDevice(attr);
}

std::string nothing() { return std::string(); }

#if GLOO_HAVE_TRANSPORT_IBVERBS
// GLOO_TEST_IB_DEVICE, or the one that is chosen without a name.
transport::ibverbs::attr verbsDevice() {
  transport::ibverbs::attr attr;
  const char* name = std::getenv("GLOO_TEST_IB_DEVICE");
  attr.name = name != nullptr ? name : "";
  return attr;
}

std::string missingVerbs() {
  return transport::ibverbs::getDeviceNames().empty()
             ? "this machine has no RDMA device"
             : "";
}
#endif

}  // namespace

const std::vector<TestTransport>& transports() {
  static const std::vector<TestTransport> all = {
    {"tcp", [] { return transport::tcp::CreateDevice(loopbackWithoutShm()); },
     &nothing, true},
    {"tcp_lazy",
     [] { return transport::tcp::CreateLazyDevice(loopbackWithoutShm()); },
     &nothing, true},
    // As who asks for TCP gets it: here, over shared memory.
    {"tcp_shm_lazy",
     [] { return transport::tcp::CreateLazyDevice(loopback()); }, &nothing,
     true},
#if GLOO_HAVE_TRANSPORT_IBVERBS
    {"ibverbs", [] { return transport::ibverbs::CreateDevice(verbsDevice()); },
     &missingVerbs, true},
    {"ibverbs_lazy",
     [] { return transport::ibverbs::CreateLazyDevice(verbsDevice()); },
     &missingVerbs, true},
#endif
    {"shm", [] { return transport::shm::CreateDevice(); }, &nothing, true},
    {"auto", &automatic, &nothing, true},
    {"shm_two_copies", &twoCopies, &nothing, true},
  };
  return all;
}

const TestTransport& chosenTransport(bool lazy) {
  const char* chosen = std::getenv("GLOO_TEST_TRANSPORT");
  const std::string name =
      std::string(chosen != nullptr ? chosen : "tcp") + (lazy ? "_lazy" : "");
  for (const TestTransport& transport : transports()) {
    if (transport.name == name) {
      return transport;
    }
  }
  throw std::runtime_error("there is no transport '" + name + "' to test");
}

bool isRequired(const std::string& name) {
  const char* list = std::getenv("GLOO_REQUIRE");
  std::istringstream words(list != nullptr ? list : "");
  for (std::string word; std::getline(words, word, ',');) {
    // tcp_lazy needs what tcp needs
    if (name == word || name.rfind(word + "_", 0) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace test
GLOO_NAMESPACE_END
