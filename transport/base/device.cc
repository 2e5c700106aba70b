#include "transport/base/device.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "gloo/common/env.h"
#include "gloo/common/error.h"
#include "gloo/internal/fork.h"
#include "gloo/internal/hash.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

Device::Device(DeviceInfo info, const SocketAddress& local,
               const MakeFactory& makeFactory)
    : info_(std::move(info)), hostId_(hostIdentity()) {
  auto lock = domain_.lock();
  factory_ = makeFactory(domain_, info_);
  try {
    tally_ = std::make_shared<LinkTally>(factory_->kinds());
    connector_ = std::make_unique<Connector>(domain_, local);
    domain_.add(*this);
  } catch (...) {
    // While the lock is held: the background thread may poll them.
    connector_.reset();
    factory_.reset();
    throw;
  }
  rest(true);
}

Device::~Device() {
  if (origin_.inherited()) {
    [[maybe_unused]] auto* factory = factory_.release();
    [[maybe_unused]] auto* connector = connector_.release();
    return;
  }
  auto lock = domain_.lock();
  domain_.remove(*this);
  connector_.reset();
  factory_.reset();
}

std::string Device::str() const {
  const std::string links = tally_->str();
  return MakeString(info_.name, ", listening on ", connector_->endpoint().str(),
                    links.empty() ? "" : ", peers: ", links);
}

std::shared_ptr<transport::Context> Device::createContext(int rank, int size) {
  origin_.check("device");
  return std::make_shared<Context>(
      std::static_pointer_cast<Device>(shared_from_this()), rank, size,
      info_.lazy);
}

internal::Statistics Device::statistics() const {
  origin_.check("device");
  auto lock = domain_.lock();
  internal::Statistics total = counts_;
  factory_->addStatistics(total);
  total.systemCalls += directCalls_.load(std::memory_order_relaxed);
  total.blockingWaits += domain_.counters().blockingWaits;
  total.handoffs += domain_.counters().handoffs;
  return total;
}

// Each pair in turn; one that is done takes itself off the list.
bool Device::poll() {
  bool moved = false;
  for (size_t n = pumps_.size(); n > 0 && !pumps_.empty(); n--) {
    PumpEntry* const entry = pumps_.popFront();
    pumps_.pushBack(entry);
    moved |= entry->pair.pumpOrFail();
  }
  return moved;
}

uint64_t hostIdentity() {
  const std::string& kernel = internal::madeOnce([] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string text;
    file >> text;
    return text.empty() ? std::to_string(randomNonce()) : text;
  });
  // All 64 bits tell hosts apart.
  return internal::mixed(
      internal::fnv1a(kernel + Environment::fromEnvironment().hostId));
}

uint32_t pidNamespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0
             ? static_cast<uint32_t>(info.st_ino)
             : 0;
}

uint64_t randomNonce() {
  uint64_t nonce = 0;
  while (nonce == 0) {
    if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce) &&
        errno != EINTR) {
      GLOO_THROW_IO_EXCEPTION("getrandom: ", errnoText(errno));
    }
  }
  return nonce;
}

}  // namespace transport::base

internal::Statistics internal::statisticsOf(const transport::Device& device) {
  const auto* base = dynamic_cast<const transport::base::Device*>(&device);
  return base != nullptr ? base->statistics() : Statistics{};
}

GLOO_NAMESPACE_END
