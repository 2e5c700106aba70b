#include "transport/base/lifeline.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/internal/thread.h"
#include "transport/base/fork.h"
#include "transport/base/lifeline_impl.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

constexpr std::chrono::seconds kOrphanLimit{30};
constexpr size_t kMaxOrphans = 1024;
constexpr size_t kLeftRemembered = 256;
constexpr std::chrono::seconds kLeaveLimit{2};
// News of a death takes a fraction of that.
constexpr std::chrono::milliseconds kSuspicion{300};
// All ranks know of a death by then: docs/failures.md.
constexpr std::chrono::milliseconds kDeathKnown{1000};
// Who is to call has usually called by then.
constexpr std::chrono::milliseconds kAskAfter{100};

// r + 2^k and r - 2^k: the graph stays connected when any few ranks are gone.
std::set<int> neighboursOf(int rank, int size) {
  std::set<int> neighbours;
  for (int64_t step = 1; step < size; step *= 2) {
    neighbours.insert(static_cast<int>((rank + step) % size));
    neighbours.insert(static_cast<int>((rank - step + size) % size));
  }
  neighbours.erase(rank);
  return neighbours;
}

}  // namespace

// Never destroyed: a context that outlives static destruction may still leave.
// A forked child makes its own.
Lifelines& Lifelines::instance() { return instanceOfProcess<Lifelines>(); }

Lifelines::Lifelines() : impl_(std::make_unique<Impl>()) {}
Lifelines::~Lifelines() = default;

void Lifelines::join(uint64_t worldNonce, uint64_t ownNonce, int rank, int size,
                     std::vector<Peer> peers, OnCause onCause) {
  impl_->join({worldNonce, ownNonce}, rank, size, std::move(peers),
              std::move(onCause));
}

void Lifelines::flood(uint64_t worldNonce, uint64_t ownNonce,
                      const internal::Cause& cause) {
  impl_->flood({worldNonce, ownNonce}, cause);
}

void Lifelines::suspect(uint64_t worldNonce, uint64_t ownNonce,
                        const internal::Cause& cause, bool gone) {
  impl_->suspect({worldNonce, ownNonce}, cause, gone);
}

void Lifelines::leave(uint64_t worldNonce, uint64_t ownNonce) {
  impl_->leave({worldNonce, ownNonce});
}

bool Lifelines::met(uint64_t worldNonce, uint64_t ownNonce) const {
  return impl_->met({worldNonce, ownNonce});
}

Lifelines::Unmet Lifelines::unmet(uint64_t worldNonce,
                                  uint64_t ownNonce) const {
  return impl_->unmet({worldNonce, ownNonce});
}

void Lifelines::adopt(UniqueFd socket, const Hello& theirs) {
  impl_->adopt(std::move(socket), theirs);
}

Lifelines::Impl::Impl()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!epoll_ || !bell_) {
    const int error = errno;
    GLOO_THROW_IO_EXCEPTION("Cannot watch over other ranks: ", errnoText(error),
                            errnoRemedy(error));
  }
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &event);
}

void Lifelines::Impl::start() {
  if (running_) {
    ring();
    return;
  }
  // Ends for want of work; touches nothing but this, which is never destroyed.
  std::thread thread = internal::startThread([this] { run(); });
  running_ = true;
  threadId_ = thread.get_id();
  thread.detach();
}

void Lifelines::Impl::tryStart() {
  try {
    start();
  } catch (const std::exception& e) {
    GLOO_WARN(e.what());
  }
}

void Lifelines::Impl::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto rv = ::write(bell_.get(), &one, sizeof(one));
}

void Lifelines::Impl::join(Key key, int rank, int size, std::vector<Peer> peers,
                           OnCause onCause) {
  const std::lock_guard guard(mutex_);
  start();
  try {
    joinWorld(key, rank, size, peers, std::move(onCause));
  } catch (...) {  // or nothing has happened
    worlds_.erase(key);
    std::erase_if(lines_,
                  [key](const auto& entry) { return entry.second.key == key; });
    throw;
  }
}

void Lifelines::Impl::joinWorld(Key key, int rank, int size,
                                const std::vector<Peer>& peers,
                                OnCause onCause) {
  World& world = worlds_[key];
  world.rank = rank;
  world.size = size;
  world.onCause = std::move(onCause);
  const std::set<int> near = neighboursOf(rank, size);
  for (const Peer& peer : peers) {
    if (!near.contains(peer.rank)) {
      continue;
    }
    world.unmet.insert(peer.rank);
    const uint64_t id = addLine(key, peer);
    Line& line = lines_.at(id);
    line.caller = rank < peer.rank;  // one of the two calls
    if (line.caller) {
      call(id, line);
    } else {
      callAgain(line, kAskAfter);
    }
  }
  takeOrphans(key);
}

bool Lifelines::Impl::met(Key key) {
  const std::lock_guard guard(mutex_);
  const auto world = worlds_.find(key);
  return world == worlds_.end() || world->second.unmet.empty();
}

Lifelines::Unmet Lifelines::Impl::unmet(Key key) {
  const std::lock_guard guard(mutex_);
  Unmet unmet;
  if (const auto at = worlds_.find(key); at != worlds_.end()) {
    const World& world = at->second;
    unmet.ranks.assign(world.unmet.begin(), world.unmet.end());
    if (world.unmet.contains(world.trouble.rank)) {
      unmet.trouble = world.trouble.text;
      unmet.isShort = world.trouble.isShort;
    }
  }
  return unmet;
}

void Lifelines::Impl::takeOrphans(Key key) {
  std::vector<Orphan> waiting = std::exchange(orphans_, {});
  for (Orphan& orphan : waiting) {
    if (Key(orphan.hello.worldNonce, orphan.hello.dstNonce) == key) {
      takeAdopted(key, std::move(orphan.socket), orphan.hello);
    } else {
      orphans_.push_back(std::move(orphan));
    }
  }
}

void Lifelines::Impl::adopt(UniqueFd socket, const Hello& theirs) {
  const std::lock_guard guard(mutex_);
  const Key key(theirs.worldNonce, theirs.dstNonce);
  if (worlds_.contains(key)) {
    takeAdopted(key, std::move(socket), theirs);
  } else if (std::find(left_.begin(), left_.end(), key) != left_.end()) {
    const uint64_t id = addLine(key, {});
    Line& line = lines_.at(id);
    line.leaving = true;
    openLine(id, line, std::move(socket));
  } else if (orphans_.size() < kMaxOrphans) {
    orphans_.push_back(
        {std::move(socket), theirs, Clock::now() + kOrphanLimit});
  }
  tryStart();
}

void Lifelines::Impl::takeAdopted(Key key, UniqueFd socket,
                                  const Hello& hello) {
  const auto at =
      std::find_if(lines_.begin(), lines_.end(), [&](const auto& entry) {
        const Line& line = entry.second;
        return line.key == key && !line.caller && !line.leaving &&
               line.peer.rank == hello.srcRank &&
               line.peer.nonce == hello.srcNonce;
      });
  // Else it is not who it says. A second call is the peer's if it has not
  // spoken on the first: it gave that up.
  if (at != lines_.end() && !at->second.confirmed) {
    openLine(at->first, at->second, std::move(socket));
  }
}

uint64_t Lifelines::Impl::addLine(Key key, const Peer& peer) {
  const uint64_t id = nextId_++;
  Line& line = lines_[id];
  line.key = key;
  line.peer = peer;
  return id;
}

void Lifelines::Impl::spread(Key key, const internal::Cause& cause,
                             uint64_t except) {
  for (auto& [id, line] : lines_) {
    if (line.key == key && line.open && id != except) {
      line.open->sayCause(cause);
      watch(line.open->socket(), id, Channel::kLine, !line.open->flush());
    }
  }
}

void Lifelines::Impl::flood(Key key, const internal::Cause& cause) {
  const std::lock_guard guard(mutex_);
  const auto world = worlds_.find(key);
  if (world != worlds_.end() && !world->second.cause) {
    world->second.cause = cause;
    spread(key, cause, 0);
  }
}

void Lifelines::Impl::suspect(Key key, const internal::Cause& cause,
                              bool gone) {
  const std::lock_guard guard(mutex_);
  const auto at = worlds_.find(key);
  if (at == worlds_.end() || at->second.suspicions.contains(cause.culprit)) {
    return;
  }
  World& world = at->second;
  const bool isNear =
      neighboursOf(world.rank, world.size).contains(cause.culprit);
  Suspicion& suspicion = world.suspicions[cause.culprit];
  suspicion.cause = cause;
  suspicion.leaves = gone && !isNear;
  suspicion.limit =
      Clock::now() + (world.left.contains(cause.culprit) ? kSuspicion.zero()
                      : suspicion.leaves                 ? kDeathKnown
                                                         : kSuspicion);
  tryStart();
}

void Lifelines::Impl::leave(Key key) {
  std::unique_lock lock(mutex_);
  if (std::this_thread::get_id() != threadId_) {
    called_.wait(lock, [&] {
      const auto world = worlds_.find(key);
      return world == worlds_.end() || !world->second.calling;
    });
  }
  if (worlds_.erase(key) == 0) {
    return;
  }
  // Who leaves may be a destructor: what there is no memory for is not done.
  try {
    left_.push_back(key);
    if (left_.size() > kLeftRemembered) {
      left_.pop_front();
    }
  } catch (const std::bad_alloc&) {
    GLOO_INFO("who calls late is not told that this rank has left");
  }
  std::erase_if(news_, [&](const auto& item) { return item.first == key; });
  const auto limit = Clock::now() + kLeaveLimit;
  for (auto at = lines_.begin(); at != lines_.end();) {
    Line& line = at->second;
    // Nothing is under way on which the peer could hear that we leave.
    const bool silent =
        line.key == key && !line.open && !(line.greeting && line.caller);
    if (line.key == key) {
      line.leaving = true;
      line.timer = limit;
      line.pidfd.reset();
      line.probe.reset();
      line.probeLimit = Clock::time_point::max();
      try {
        if (line.open) {
          line.open->sayBye();
        }
      } catch (const std::bad_alloc&) {
        GLOO_WARN("rank ", line.peer.rank,
                  " is not told that this rank leaves");
      }
    }
    at = silent ? lines_.erase(at) : std::next(at);
  }
  tryStart();
}

}  // namespace transport::base
GLOO_NAMESPACE_END
