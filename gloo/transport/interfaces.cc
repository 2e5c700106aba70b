// Out of line, so that each interface has one vtable for all libraries.
#include "gloo/internal/require_timeout.h"
#include "gloo/internal/shared_timeout.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"

GLOO_NAMESPACE_BEGIN

IStore::~IStore() = default;

namespace transport {

namespace {
constexpr std::chrono::milliseconds kDefaultTimeout{30000};
}

Address::~Address() = default;
RemoteKey::~RemoteKey() = default;
UnboundBuffer::~UnboundBuffer() = default;
Buffer::~Buffer() = default;
Pair::~Pair() = default;
Device::~Device() = default;

Context::Context(int rank, int size)
    : rank(rank), size(size), timeout_(kDefaultTimeout) {}
Context::~Context() = default;

void Context::setTimeout(std::chrono::milliseconds timeout) {
  internal::requireTimeout(timeout);
  internal::storeTimeout(timeout_, timeout);
}

std::chrono::milliseconds Context::getTimeout() const {
  return internal::loadTimeout(timeout_);
}

void Context::closePairs() {
  for (int peer = 0; peer < size; peer++) {
    if (auto& pair = getPair(peer)) {
      pair->close();
    }
  }
}

}  // namespace transport
GLOO_NAMESPACE_END
