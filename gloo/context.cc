#include "gloo/context.h"

#include "gloo/common/logging.h"
#include "gloo/internal/collective_state.h"
#include "gloo/internal/require_timeout.h"
#include "gloo/internal/shared_timeout.h"

GLOO_NAMESPACE_BEGIN

namespace {
constexpr std::chrono::milliseconds kDefaultTimeout{30000};
}

Context::Context(int rank, int size, int base)
    : rank(rank), size(size), base(base), slot_(0), timeout_(kDefaultTimeout) {
  GLOO_ENFORCE(size >= 1, "a group of size ", size);
  GLOO_ENFORCE(rank >= 0 && rank < size, "rank ", rank,
               " is outside a group of size ", size);
}

// The plans refer to the transport's context.
Context::~Context() { collectiveState_.reset(); }

void Context::attach(std::shared_ptr<transport::Device> device,
                     std::shared_ptr<transport::Context> transportContext) {
  madeState_.store(nullptr, std::memory_order_release);
  collectiveState_.reset();
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
  if (auto* made = madeState_.load(std::memory_order_acquire)) {
    return *made;
  }
  GLOO_ENFORCE(transportContext_ != nullptr, "rank ", rank,
               ": this context is not connected");
  const std::lock_guard<std::mutex> lock(collectiveStateMutex_);
  if (collectiveState_ == nullptr) {
    collectiveState_ = internal::CollectiveState::make(*transportContext_);
    madeState_.store(collectiveState_.get(), std::memory_order_release);
  }
  return *collectiveState_;
}

std::unique_ptr<transport::RemoteKey> Context::deserializeRemoteKey(
    const std::string& serialized) {
  GLOO_ENFORCE(transportContext_ != nullptr, "rank ", rank,
               ": this context is not connected");
  return transportContext_->deserializeRemoteKey(serialized);
}

GLOO_NAMESPACE_END
