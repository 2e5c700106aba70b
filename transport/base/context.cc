// Lifecycle, buffers and failure of a context; operations are in
// context_operations.cc, connecting in context_mesh.cc.
#include "transport/base/context.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

#include "gloo/common/logging.h"
#include "gloo/internal/collective_state.h"
#include "transport/base/lifeline.h"
#include "transport/base/region_key.h"
#include "transport/base/unbound_buffer.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;
using internal::CausePtr;
using std::chrono::milliseconds;

namespace {

// How long a departure may take when a peer does not listen.
constexpr milliseconds kFarewell{2000};
constexpr milliseconds kFailedFarewell{300};
constexpr int kMaxSize = 1 << 17;

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
// takes leave of its peers, so that they do not take it for dead.
class Registry {
 public:
  static Registry& instance() {
    static auto* registry = new Registry;  // never destroyed: used at exit
    return *registry;
  }

  void add(Context* context) {
    const std::lock_guard guard(mutex_);
    contexts_.insert(context);
  }

  void remove(Context* context) {
    const std::lock_guard guard(mutex_);
    contexts_.erase(context);
  }

 private:
  Registry() { std::atexit(closeAll); }

  static void closeAll() {
    Registry& registry = instance();
    if (registry.origin_.inherited()) {
      return;
    }
    const std::lock_guard guard(registry.mutex_);
    for (Context* context : registry.contexts_) {
      context->close();
    }
  }

  std::mutex mutex_;
  Origin origin_;
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
      agreement_(rank),
      pairs_(static_cast<size_t>(size)),
      peers_(static_cast<size_t>(size)) {
  Registry::instance().add(this);
  auto lock = this->lock();
  eagerBytes_ = device_->factory().caps().eagerBytes;
  device_->connector().addParty(nonce_, *this);
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
  }
}

void Context::close() {
  if (origin_.inherited()) {
    return;
  }
  auto lock = this->lock();
  if (closed_) {
    return;
  }
  closed_ = true;
  goodbye(lock);
  const bool joined = std::exchange(joined_, false);
  if (joined) {
    lock.unlock();
    Lifelines::instance().leave(worldNonce_, nonce_);
    lock.lock();
  }
  if (cause_ == nullptr) {
    auto cause = std::make_shared<Cause>();
    cause->kind = Cause::Kind::kClosed;
    cause->foundBy = rank();
    cause->culprit = rank();
    cause->text = MakeString("rank ", rank(), " closed this context");
    cause_ = std::move(cause);
    failPending();
  }
  if (direct_ != nullptr) {
    direct_->fail();
  }
  device_->connector().removeParty(nonce_);
  for (int peer = 0; peer < size(); peer++) {
    if (Pair* pair = pairAt(peer)) {
      pair->abandon();
    }
  }
  domain().changed();
}

// Lets what was sent leave, then says bye to all and waits until they have
// heard it. A peer that is stopped does not hold us longer than kFarewell.
void Context::goodbye(ProgressDomain::Lock& lock) {
  const auto all = [this](auto property) {
    return std::all_of(pairs_.begin(), pairs_.end(), [&](const auto& pair) {
      return pair == nullptr || property(static_cast<const Pair&>(*pair));
    });
  };
  const Deadline deadline =
      Deadline::after(cause_ == nullptr ? kFarewell : kFailedFarewell);
  if (cause_ == nullptr) {
    const auto flushed = [&] {
      return cause_ != nullptr ||
             all([](const Pair& pair) { return pair.flushed(); });
    };
    domain().wait(lock, flushed, deadline);
    for (int peer = 0; peer < size(); peer++) {
      if (Pair* pair = pairAt(peer)) {
        pair->sayBye();
      }
    }
  }
  const auto ended = [&] {
    return all([](const Pair& pair) { return pair.ended(); });
  };
  domain().wait(lock, ended, deadline);
}

void Context::closePair(int peer) {
  if (origin_.inherited()) {
    return;
  }
  auto lock = this->lock();
  Pair* pair = pairAt(peer);
  if (pair == nullptr || closed_) {
    return;
  }
  const Deadline deadline = Deadline::after(kFarewell);
  domain().wait(
      lock, [&] { return cause_ != nullptr || pair->flushed(); }, deadline);
  pair->sayBye();
  pair->leave();
  domain().wait(
      lock, [&] { return cause_ != nullptr || pair->ended(); }, deadline);
}

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
  if (key->rank < 0 || key->rank >= size()) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("a remote key of rank ", key->rank,
                                           " in a group of size ", size());
  }
  return key;
}

// ---- Failure ----

CausePtr Context::failure() const {
  auto lock = device_->domain().lock();
  return cause_;
}

void Context::fail(CausePtr cause) {
  auto lock = this->lock();
  if (cause->kind == Cause::Kind::kTimeout) {
    failTimeout(lock, *cause);
  } else {
    failLocked(std::move(cause));
  }
}

// Whoever is waited for may itself wait for a rank that is stopped: the ranks
// that do not answer are named.
void Context::failTimeout(ProgressDomain::Lock& lock, Cause cause) {
  const std::vector<int> silent =
      cause_ == nullptr ? silentRanks(lock) : std::vector<int>{};
  if (!silent.empty()) {
    std::string ranks;
    for (const int peer : silent) {
      ranks += MakeString(ranks.empty() ? "rank " : ", rank ", peer);
    }
    cause.text += MakeString("; no sign of life from ", ranks,
                             " (stopped, or unreachable)");
    cause.culprit = silent.front();
  }
  cause.text = cause.text.substr(0, Cause::kMaxText);
  failLocked(std::make_shared<const Cause>(std::move(cause)));
}

void Context::failNew(Cause::Kind kind, int culprit, const std::string& text) {
  auto cause = std::make_shared<Cause>();
  cause->kind = kind;
  cause->foundBy = rank();
  cause->culprit = culprit;
  cause->text = text.substr(0, Cause::kMaxText);
  failLocked(std::move(cause));
}

// The first cause wins. All peers are told; then nothing refers to the memory
// of an operation any more, and every operation ends.
void Context::failLocked(CausePtr cause) {
  if (cause_ != nullptr || closed_) {
    return;
  }
  cause_ = std::move(cause);
  GLOO_INFO("rank ", rank(), ": ", cause_->text);
  for (int peer = 0; peer < size(); peer++) {
    if (Pair* pair = pairAt(peer)) {
      pair->fail(*cause_);
    }
  }
  // That this rank uses what it has closed is nobody else's concern.
  const bool ownFault =
      cause_->kind == Cause::Kind::kClosed && cause_->culprit == rank();
  if (joined_ && !ownFault) {
    Lifelines::instance().flood(worldNonce_, nonce_, *cause_);
  }
  failPending();
  if (direct_ != nullptr) {
    direct_->fail();
  }
  changes_++;
  domain().changed();
}

void Context::failPending() {
  while (Operation* op = pending_.front()) {
    ended(*op, Operation::State::kFailed);
  }
}

void Context::throwFailure(std::string_view operation) const {
  internal::throwCause(*cause_, MakeString("rank ", rank(), ": ", operation));
}

void Context::checkUsable(const char* what) const {
  origin_.check("context");
  auto lock = device_->domain().lock();
  throwIfFailed(what);
}

// A wait of `owner` has reached its deadline.
void Context::timedOut(ProgressDomain::Lock& lock, const OperationOwner& owner,
                       const char* what, std::chrono::nanoseconds elapsed) {
  const auto ms = std::chrono::duration_cast<milliseconds>(elapsed).count();
  Cause cause;
  cause.kind = Cause::Kind::kTimeout;
  cause.foundBy = rank();
  cause.text = MakeString("Timed out after ", ms, " ms: rank ", rank(),
                          " waited for a ", what, " that nobody started");
  for (Operation* op = pending_.front(); op != nullptr; op = op->nextPending) {
    if (op->user == &owner) {
      cause.culprit = op->peer;
      cause.text = MakeString("Timed out after ", ms, " ms: rank ", rank(),
                              ": ", describe(*op));
      break;
    }
  }
  failTimeout(lock, std::move(cause));
}

void Context::onDeparture(int peer) {
  Pair& pair = *pairAt(peer);
  pair.dropWildcards();
  if (direct_ != nullptr) {
    direct_->depart(peer);
  }
  if (pair.leftWaiting()) {
    failDeparted(peer);
  } else {
    pair.answerBye();
  }
}

void Context::failLeft(int peer) {
  auto lock = this->lock();
  failDeparted(peer);
}

void Context::failDeparted(int peer) {
  if (pairAt(peer)->closedHere()) {
    failNew(Cause::Kind::kClosed, rank(),
            MakeString("rank ", rank(), " closed its pair with rank ", peer));
    return;
  }
  failNew(Cause::Kind::kClosed, peer,
          MakeString("rank ", peer, " left (it closed its context) while rank ",
                     rank(), " had operations with it"));
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
