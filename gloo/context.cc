#include "gloo/context.h"

#include <mutex>

#include "gloo/common/logging.h"
#include "gloo/internal/collective_state.h"
#include "gloo/internal/fork.h"
#include "gloo/internal/require_timeout.h"
#include "gloo/internal/shared_timeout.h"

GLOO_NAMESPACE_BEGIN

namespace {
constexpr std::chrono::milliseconds kDefaultTimeout{30000};
}

// The state is made when it is first needed. In a forked child, whose parent's
// threads may have been in the middle of it, it is left as it is.
struct Context::Collectives {
  ~Collectives() {
    if (origin.inherited()) {
      [[maybe_unused]] auto* leaked =
          std::make_unique<std::shared_ptr<internal::CollectiveState>>(state)
              .release();
    }
  }

  const internal::Origin origin;
  std::mutex mutex;
  std::shared_ptr<internal::CollectiveState> state;
};

Context::Context(int rank, int size, int base)
    : rank(rank),
      size(size),
      base(base),
      slot_(0),
      timeout_(kDefaultTimeout),
      collectives_(std::make_unique<Collectives>()) {
  GLOO_ENFORCE(size >= 1, "a group of size ", size);
  GLOO_ENFORCE(rank >= 0 && rank < size, "rank ", rank,
               " is outside a group of size ", size);
}

// The plans refer to the transport's context.
Context::~Context() { collectives_.reset(); }

void Context::attach(std::shared_ptr<transport::Device> device,
                     std::shared_ptr<transport::Context> transportContext) {
  madeState_.store(nullptr, std::memory_order_release);
  collectives_ = std::make_unique<Collectives>();
  transportContext_ = std::move(transportContext);
  device_ = std::move(device);
}

std::shared_ptr<transport::Device>& Context::getDevice() {
  GLOO_ENFORCE(device_ != nullptr, "rank ", rank,
               ": this context is not connected");
  return device_;
}

std::unique_ptr<transport::Pair>& Context::getPair(int i) {
  GLOO_ENFORCE(transportContext_ != nullptr, "rank ", rank,
               ": this context is not connected");
  return transportContext_->getPair(i);
}

std::unique_ptr<transport::UnboundBuffer> Context::createUnboundBuffer(
    void* ptr, size_t size) {
  GLOO_ENFORCE(transportContext_ != nullptr, "rank ", rank,
               ": this context is not connected");
  return transportContext_->createUnboundBuffer(ptr, size);
}

int Context::nextSlot(int numToSkip) {
  GLOO_ENFORCE(numToSkip > 0, "nextSlot(", numToSkip, ")");
  return std::atomic_ref(slot_).fetch_add(numToSkip, std::memory_order_relaxed);
}

void Context::closeConnections() {
  if (transportContext_ == nullptr) {
    return;
  }
  transportContext_->closePairs();
}

void Context::setTimeout(std::chrono::milliseconds timeout) {
  internal::requireTimeout(timeout);
  internal::storeTimeout(timeout_, timeout);
  if (transportContext_ != nullptr) {
    transportContext_->setTimeout(timeout);
  }
}

std::chrono::milliseconds Context::getTimeout() const {
  return internal::loadTimeout(timeout_);
}

internal::CollectiveState& Context::collectiveState() {
  auto* made = madeState_.load(std::memory_order_acquire);
  return made != nullptr ? *made : makeCollectiveState();
}

[[gnu::noinline]] internal::CollectiveState& Context::makeCollectiveState() {
  GLOO_ENFORCE(transportContext_ != nullptr, "rank ", rank,
               ": this context is not connected");
  Collectives& collectives = *collectives_;
  collectives.origin.check("context");
  const std::lock_guard<std::mutex> lock(collectives.mutex);
  if (collectives.state == nullptr) {
    collectives.state = internal::CollectiveState::make(*transportContext_);
    madeState_.store(collectives.state.get(), std::memory_order_release);
  }
  return *collectives.state;
}

std::unique_ptr<transport::RemoteKey> Context::deserializeRemoteKey(
    const std::string& serialized) {
  GLOO_ENFORCE(transportContext_ != nullptr, "rank ", rank,
               ": this context is not connected");
  return transportContext_->deserializeRemoteKey(serialized);
}

GLOO_NAMESPACE_END
