// Lifecycle and buffers of a context; failure is in context_failure.cc,
// operations in context_operations.cc, those of buffers in context_owned.cc,
// connecting in context_mesh.cc.
#include "transport/base/context.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "gloo/common/logging.h"
#include "gloo/internal/collective_state.h"
#include "gloo/internal/thread.h"
#include "transport/base/fork.h"
#include "transport/base/lifeline.h"
#include "transport/base/region_key.h"
#include "transport/base/unbound_buffer.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;
using std::chrono::milliseconds;

namespace {

// How long a departure may take while a peer does not listen.
constexpr milliseconds kFarewell{2000};
constexpr milliseconds kFailedFarewell{300};
constexpr int kMaxSize = 1 << 17;
constexpr size_t kMostClosing = 64;  // threads at exit

// Before anything is made for each rank of the group.
int checkedRank(int rank, int size) {
  if (size < 1 || rank < 0 || rank >= size) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("rank ", rank,
                                           " is outside a group of size ", size,
                                           ": ranks go from 0 to size - 1");
  }
  if (size > kMaxSize) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION(
        "a group of ", size, " ranks: it may have at most ", kMaxSize);
  }
  return rank;
}

// All contexts of the process: one that exits without destroying them still
// takes leave of its peers, so that they do not take it for dead. A forked
// child has one of its own.
class Registry {
 public:
  // At exit, in this process and in its forked children.
  Registry() { std::atexit(closeAll); }

  static Registry& instance() { return instanceOfProcess<Registry>(); }

  void add(Context* context) {
    const std::lock_guard guard(mutex_);
    contexts_.insert(context);
  }

  void remove(Context* context) {
    const std::lock_guard guard(mutex_);
    contexts_.erase(context);
  }

 private:
  // At the same time, as each waits for peers that may be stopped.
  static void closeAll() {
    Registry& registry = instance();
    const std::lock_guard guard(registry.mutex_);
    auto next = registry.contexts_.begin();
    std::mutex turn;
    const auto closeOthers = [&] {
      for (std::unique_lock lock(turn); next != registry.contexts_.end();) {
        Context* const context = *next++;
        lock.unlock();
        context->close();
        lock.lock();
      }
    };
    std::vector<std::thread> helpers;
    try {
      const size_t most = std::min(registry.contexts_.size(), kMostClosing);
      helpers.reserve(most);  // a thread that starts has a place
      while (helpers.size() + 1 < most) {
        helpers.push_back(internal::startThread(closeOthers));
      }
    } catch (const std::exception& e) {
      GLOO_INFO("contexts are closed one after the other: ", e.what());
    }
    closeOthers();
    for (std::thread& helper : helpers) {
      helper.join();
    }
  }

  std::mutex mutex_;
  std::set<Context*> contexts_;
};

}  // namespace

Context::Context(std::shared_ptr<Device> device, int rank, int size, bool lazy)
    : transport::Context(checkedRank(rank, size), size),
      entries(&device->counts().allocations),
      arrivals(&device->counts().allocations),
      intros(&device->counts().allocations),
      adverts(&device->counts().allocations),
      slotStates(&device->counts().allocations),
      operations(&device->counts().allocations),
      bounce(&device->counts().allocations),
      device_(std::move(device)),
      lazy_(lazy),
      nonce_(randomNonce()),
      spareCause_(std::make_shared<Cause>()),
      agreement_(rank),
      pairs_(static_cast<size_t>(size)),
      peers_(static_cast<size_t>(size)) {
  spareCause_->text.reserve(Cause::kMaxText);
  Registry::instance().add(this);
  try {
    auto lock = this->lock();
    eagerBytes_ = capsOfLinks().eagerBytes;
    device_->connector().addParty(nonce_, *this);
  } catch (...) {
    Registry::instance().remove(this);  // the destructor does not run
    throw;
  }
}

Context::~Context() {
  if (origin_.inherited()) {
    // The locks may be held by threads that do not exist here, and the peers
    // belong to the parent: nothing is torn down.
    for (auto& pair : pairs_) {
      [[maybe_unused]] auto* leaked = pair.release();
    }
    return;
  }
  close();
  Registry::instance().remove(this);
  {
    auto lock = this->lock();
    pairs_.clear();
    peers_.clear();  // and the links that were being made
    for (const auto& [data, kept] : kept_) {
      kept->release();
    }
  }
}

void Context::close() {
  if (origin_.inherited()) {
    return;
  }
  auto lock = this->lock();
  if (closed_) {
    // By another thread, which the process must not end before.
    waitWhileMoving(
        lock, [this] { return hasClosed_; }, 2 * kFarewell,
        [](const Pair&) { return true; });
    return;
  }
  endDispute();
  closed_ = true;
  try {
    goodbye(lock);
  } catch (const std::exception& e) {
    GLOO_WARN("rank ", rank(), " leaves without a farewell: ", e.what());
  }
  const bool joined = std::exchange(joined_, false);
  if (joined) {
    lock.unlock();
    Lifelines::instance().leave(worldNonce_, nonce_);
    lock.lock();
  }
  if (cause_ == nullptr) {
    cause_ = internal::makeCause([this] { return closedCause(); });
  }
  // As when a context fails: nothing refers to the memory of an operation by
  // the time that it ends.
  for (int peer = 0; peer < size(); peer++) {
    if (Pair* pair = pairAt(peer)) {
      pair->abandon();
    }
  }
  failPending();
  if (direct_ != nullptr) {
    direct_->fail();
  }
  device_->connector().removeParty(nonce_);
  hasClosed_ = true;
  domain().changed();
}

// Lets what was sent leave, then says bye to all and waits until they have
// heard it. A peer that is stopped does not hold us longer than kFarewell; one
// that takes what we have sent, however slowly, has the time that it needs; one
// from which we have parted has had its time.
void Context::goodbye(ProgressDomain::Lock& lock) {
  const auto all = [this](auto property) {
    return std::all_of(pairs_.begin(), pairs_.end(), [&](const auto& it) {
      const auto* pair = static_cast<const Pair*>(it.get());
      return pair == nullptr || pair->closedHere() || property(*pair);
    });
  };
  milliseconds limit = kFailedFarewell;
  if (cause_ == nullptr) {
    const auto flushed = [&] {
      return cause_ != nullptr ||
             all([](const Pair& pair) { return pair.flushed(); });
    };
    const bool left = waitWhileMoving(
        lock, flushed, kFarewell,
        [](const Pair& pair) { return !pair.closedHere() && !pair.flushed(); },
        Sign::kTaken);
    limit = left ? kFarewell : milliseconds(0);
    byeSaid_ = true;
    for (int peer = 0; peer < size(); peer++) {
      if (Pair* pair = pairAt(peer)) {
        pair->sayBye();
      }
    }
  }
  // Who has heard our call, and finds it ended without a farewell, would take
  // us for dead.
  const auto ended = [&] {
    return all([](const Pair& pair) { return pair.ended(); }) &&
           (cause_ != nullptr || !isCalling());
  };
  waitWhileMoving(lock, ended, limit, [](const Pair& pair) {
    return !pair.closedHere() && !pair.ended();
  });
}

// The same to the peers of `first` to `last`, from which this rank alone parts.
void Context::part(int first, int last) {
  if (origin_.inherited()) {
    return;
  }
  auto lock = this->lock();
  if (closed_) {
    return;
  }
  std::vector<Pair*> pairs;
  for (int peer = first; peer <= last; peer++) {
    if (Pair* pair = pairAt(peer)) {
      pairs.push_back(pair);
    }
  }
  const auto allOf = [&](auto property) {
    return [&, property] {
      return cause_ != nullptr ||
             std::all_of(pairs.begin(), pairs.end(), std::mem_fn(property));
    };
  };
  const auto among = [&](auto property) {
    return [=](const Pair& pair) {
      return pair.peer() >= first && pair.peer() <= last &&
             !std::invoke(property, pair);
    };
  };
  const bool left = waitWhileMoving(lock, allOf(&Pair::flushed), kFarewell,
                                    among(&Pair::flushed), Sign::kTaken);
  for (Pair* pair : pairs) {
    pair->sayBye();
    pair->leave();
    if (!pair->linked()) {
      partUnlinked(*pair);
    }
  }
  domain().changed();  // waits of bound buffers end, too
  waitWhileMoving(lock, allOf(&Pair::ended), left ? kFarewell : milliseconds(0),
                  among(&Pair::ended));
}

// No answer to our farewell will come, but for what waits.
void Context::partUnlinked(Pair& pair) {
  pair.dropWildcards();
  if (pair.leftWaiting() || pair.sending()) {
    failDeparted(pair.peer());
  }
}

void Context::closePair(int peer) { part(peer, peer); }

void Context::closePairs() { part(0, size() - 1); }

std::unique_ptr<transport::Pair>& Context::getPair(int peer) {
  if (peer < 0 || peer >= size()) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION(
        "rank ", peer, " is outside a group of size ", size());
  }
  return pairs_[static_cast<size_t>(peer)];
}

std::unique_ptr<transport::Pair>& Context::createPair(int peer) {
  origin_.check("context");
  auto& slot = getPair(peer);
  if (peer == rank()) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("rank ", peer,
                                           ": there is no pair with oneself");
  }
  auto lock = this->lock();
  makePair(peer);
  return slot;
}

Pair& Context::makePair(int peer) {
  auto& slot = pairs_[static_cast<size_t>(peer)];
  if (slot == nullptr) {
    slot = std::make_unique<Pair>(*this, peer);
  }
  return static_cast<Pair&>(*slot);
}

std::unique_ptr<transport::UnboundBuffer> Context::createUnboundBuffer(
    void* ptr, size_t size) {
  checkUsable("createUnboundBuffer");
  return std::make_unique<UnboundBuffer>(*this, ptr, size);
}

std::unique_ptr<transport::RemoteKey> Context::deserializeRemoteKey(
    const std::string& serialized) {
  auto key = RegionKey::deserialize(serialized);
  GLOO_ENFORCE(key->rank >= 0 && key->rank < size(), "a remote key of rank ",
               key->rank, " in a group of size ", size());
  return key;
}

}  // namespace transport::base

internal::KeptMemory::~KeptMemory() = default;

std::shared_ptr<const internal::Profile> internal::profileOf(
    transport::Context& context) {
  auto* base = dynamic_cast<transport::base::Context*>(&context);
  return base != nullptr ? base->profile() : nullptr;
}

std::string internal::transportOf(transport::Context& context) {
  auto* base = dynamic_cast<transport::base::Context*>(&context);
  return base != nullptr ? base->device().factory().kind() : std::string();
}

GLOO_NAMESPACE_END
