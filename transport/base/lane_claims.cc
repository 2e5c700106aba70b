#include "transport/base/lane_claims.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "gloo/common/deadline.h"
#include "gloo/internal/hash.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPair = 2 * kLine;
// For what lasts no longer than a few instructions of another thread, unless
// that is stopped.
constexpr int kYields = 4096;
constexpr std::chrono::milliseconds kNap{1};
// So long a failure takes to be known everywhere, and between two looks at
// that.
constexpr std::chrono::milliseconds kNews{1000};
constexpr std::chrono::microseconds kGlance{100};
constexpr uint64_t kTaken = UINT64_MAX;  // the name of one being claimed

size_t pairs(size_t bytes) { return (bytes + kPair - 1) / kPair * kPair; }

}  // namespace

struct alignas(kPair) LaneClaims::Board {
  alignas(kLine) std::atomic<uint32_t> owner;  // of the lock: rank + 1
  // Under the lock.
  uint32_t next;                                       // lane to be claimed
  uint32_t refusing;                                   // 1: no lane is claimed
  alignas(kLine) std::atomic<uint64_t> names[kLanes];  // changed under the lock
  std::atomic<uint32_t> closed;                        // 1: a rank has failed
};

size_t LaneClaims::memoryBytes(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  return sizeof(Board) + kLanes * n * sizeof(Count) +
         pairs(n * sizeof(uint64_t));
}

LaneClaims::LaneClaims(char* memory, int rank, int ranks,
                       const std::atomic<bool>& failed)
    : board_(*reinterpret_cast<Board*>(memory)),
      rank_(rank),
      ranks_(ranks),
      failed_(failed) {}

LaneClaims::Count& LaneClaims::countOf(int lane, int rank) const {
  auto* const counts = reinterpret_cast<Count*>(&board_ + 1);
  return counts[lane * ranks_ + rank];
}

// Of each rank; under the lock.
uint64_t* LaneClaims::sums() const {
  auto* const counts = reinterpret_cast<Count*>(&board_ + 1);
  return reinterpret_cast<uint64_t*>(counts + kLanes * ranks_);
}

// Of one call.
class LaneClaims::Patience {
 public:
  explicit Patience(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  // False: it is at its end.
  bool wait(int culprit) {
    culprit_ = culprit;
    if (turns_++ == 0) {
      deadline_ = Deadline::after(timeout_);
    }
    if (turns_ < kYields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
    return !deadline_.expired();
  }
  int culprit() const { return culprit_; }
  std::chrono::milliseconds waited() const {
    return turns_ == 0 || deadline_.never() ? std::chrono::milliseconds{0}
                                            : timeout_ - deadline_.left();
  }

 private:
  const std::chrono::milliseconds timeout_;
  Deadline deadline_;
  int turns_ = 0;
  int culprit_ = -1;
};

LaneClaims::Outcome LaneClaims::enter(uint64_t tag,
                                      std::chrono::milliseconds timeout,
                                      int* lane, int* culprit,
                                      std::chrono::milliseconds* waited) {
  Patience patience(timeout);
  std::chrono::milliseconds waitedForNews{0};
  const Outcome outcome = tryToEnter(nameOf(tag), patience, lane);
  if (outcome == Outcome::kFailed) {
    waitedForNews = awaitFailure(timeout);
  }
  if (culprit != nullptr) {
    *culprit = patience.culprit();
  }
  if (waited != nullptr) {
    *waited = patience.waited() + waitedForNews;
  }
  return outcome;
}

LaneClaims::Outcome LaneClaims::tryToEnter(uint64_t name, Patience& patience,
                                           int* lane) {
  for (int i = 0; i < kLanes; i++) {
    if (known_[i].load(std::memory_order_relaxed) == name) {
      *lane = i;
      const Outcome outcome = enterKnown(i, name);
      if (outcome != Outcome::kLinks) {
        return outcome;
      }
    }
  }
  Outcome why = Outcome::kFailed;
  while (lock(patience, &why)) {
    const std::optional<Outcome> outcome = enterLocked(name, lane);
    unlock();
    if (outcome.has_value()) {
      return *outcome;
    }
    if (!mayGoOn(patience, rank_, &why)) {
      break;
    }
  }
  return why;
}

LaneClaims::Outcome LaneClaims::takeBack(uint64_t tag,
                                         std::chrono::milliseconds timeout,
                                         int* culprit) {
  Patience patience(timeout);
  Outcome why = Outcome::kLinks;
  if (lock(patience, &why)) {
    addToSum(-internal::mixed(nameOf(tag)));
    unlock();
  }
  *culprit = patience.culprit();
  return why;
}

// The board may tell of a failure before the links do. What went over those
// meanwhile would look to others, who are in the lane, like another operation.
std::chrono::milliseconds LaneClaims::awaitFailure(
    std::chrono::milliseconds timeout) const {
  const std::chrono::milliseconds most =
      timeout <= timeout.zero() ? kNews : std::min(timeout, kNews);
  const Deadline deadline = Deadline::after(most);
  while (!failed_.load(std::memory_order_acquire) && !deadline.expired()) {
    std::this_thread::sleep_for(kGlance);
  }
  return most - deadline.left();
}

void LaneClaims::goOn(int lane) {
  std::atomic<uint64_t>& running = running_[lane];
  running.store(running.load(std::memory_order_relaxed) | 1,
                std::memory_order_release);
}

void LaneClaims::leave(int lane) {
  std::atomic<uint64_t>& mine = count(lane, rank_);
  const uint64_t now = mine.load(std::memory_order_relaxed);
  std::atomic<uint64_t>& running = running_[lane];
  const bool began = running.load(std::memory_order_relaxed) % 2 == 1;
  running.store(0, std::memory_order_release);
  mine.store(began ? now + 1 : now - 1, std::memory_order_release);
}

bool LaneClaims::hasGoneOn(uint64_t tag) const {
  const uint64_t asking = 2 * nameOf(tag);
  bool found = false;
  for (const std::atomic<uint64_t>& running : running_) {
    uint64_t value = running.load(std::memory_order_seq_cst);
    while (value == asking) {
      sched_yield();
      value = running.load(std::memory_order_acquire);
    }
    found = found || value == asking + 1;
  }
  return found;
}

// ---- After a failure

void LaneClaims::close() { board_.closed.store(1, std::memory_order_seq_cst); }

bool LaneClaims::isClosed() const {
  return board_.closed.load(std::memory_order_seq_cst) != 0;
}

void LaneClaims::stop(int lane) {
  Count& mine = countOf(lane, rank_);
  mine.stopped.store(mine.value.load(std::memory_order_relaxed),
                     std::memory_order_release);
}

// All ranks count alike: who has another number is at another operation.
bool LaneClaims::works(int lane, int rank) const {
  const Count& theirs = countOf(lane, rank);
  const uint64_t mine = count(lane, rank_).load(std::memory_order_relaxed);
  return theirs.value.load(std::memory_order_seq_cst) == mine &&
         theirs.stopped.load(std::memory_order_acquire) != mine;
}

// ---- Entering

// This thread has made the count odd, for that operation. As long as nobody
// else writes there, none of this rank is in the lane then.
LaneClaims::Outcome LaneClaims::entered(int lane, uint64_t name) {
  uint64_t none = 0;
  return running_[lane].compare_exchange_strong(none, 2 * name,
                                                std::memory_order_seq_cst)
             ? Outcome::kLane
             : Outcome::kOverwritten;
}

// kLinks: it is another's by now, or a thread of this rank is about to find
// out whether it is.
LaneClaims::Outcome LaneClaims::enterKnown(int lane, uint64_t name) {
  std::atomic<uint64_t>& mine = count(lane, rank_);
  const std::atomic<uint64_t>& claim = board_.names[lane];
  // acquire: what ran before has left running_ before it made the count even
  uint64_t before = mine.load(std::memory_order_acquire);
  if (before % 2 == 1 || !mine.compare_exchange_strong(
                             before, before + 1, std::memory_order_seq_cst)) {
    return runs(lane, name) ? Outcome::kInUse : Outcome::kLinks;
  }
  if (isClosed()) {
    mine.store(before, std::memory_order_release);
    return Outcome::kFailed;
  }
  if (claim.load(std::memory_order_seq_cst) == name) {
    return entered(lane, name);
  }
  mine.store(before, std::memory_order_release);
  uint64_t stale = name;
  known_[lane].compare_exchange_strong(stale, 0, std::memory_order_relaxed);
  return Outcome::kLinks;
}

std::optional<LaneClaims::Outcome> LaneClaims::enterLocked(uint64_t name,
                                                           int* lane) {
  for (int i = 0; i < kLanes; i++) {
    if (board_.names[i].load(std::memory_order_seq_cst) == name) {
      *lane = i;
      return enterClaimed(i, name);
    }
  }
  *lane = board_.refusing != 0 ? -1 : claimIdle(name);
  if (*lane < 0) {
    addToSum(internal::mixed(name));
    return Outcome::kLinks;
  }
  return enterClaimed(*lane, name);
}

// The claim binds only while ranks are in the lane: where this rank has to wait
// and let go of the lock, and nobody else has begun, it may be another's then.
std::optional<LaneClaims::Outcome> LaneClaims::enterClaimed(int lane,
                                                            uint64_t name) {
  known_[lane].store(name, std::memory_order_relaxed);
  std::atomic<uint64_t>& mine = count(lane, rank_);
  uint64_t before = mine.load(std::memory_order_acquire);
  if (before % 2 == 0 && mine.compare_exchange_strong(
                             before, before + 1, std::memory_order_seq_cst)) {
    if (isClosed()) {
      mine.store(before, std::memory_order_release);
      return Outcome::kFailed;
    }
    return entered(lane, name);
  }
  if (runs(lane, name)) {
    return Outcome::kInUse;
  }
  // A thread that knew the lane by another name has yet to see this one, or
  // one that has begun with this one has yet to say so.
  return std::nullopt;
}

// Of what this rank does over the links. Under the lock.
void LaneClaims::addToSum(uint64_t number) {
  uint64_t* const sums = this->sums();
  sums[rank_] += number;
  board_.refusing = 0;
  for (int rank = 0; rank < ranks_; rank++) {
    board_.refusing |= sums[rank] != sums[0] ? 1U : 0U;
  }
}

int LaneClaims::claimIdle(uint64_t name) {
  for (int i = 0; i < kLanes; i++) {
    const int lane =
        static_cast<int>((board_.next + static_cast<uint32_t>(i)) % kLanes);
    std::atomic<uint64_t>& claim = board_.names[lane];
    const uint64_t before = claim.exchange(kTaken, std::memory_order_seq_cst);
    if (isIdle(lane)) {
      claim.store(name, std::memory_order_seq_cst);
      board_.next = static_cast<uint32_t>(lane) + 1;
      return lane;
    }
    claim.store(before, std::memory_order_seq_cst);
  }
  return -1;
}

bool LaneClaims::isIdle(int lane) const {
  const uint64_t first = count(lane, 0).load(std::memory_order_seq_cst);
  bool idle = first % 2 == 0;
  for (int rank = 1; rank < ranks_; rank++) {
    idle &= count(lane, rank).load(std::memory_order_seq_cst) == first;
  }
  return idle;
}

bool LaneClaims::lock(Patience& patience, Outcome* why) {
  const auto self = static_cast<uint32_t>(rank_) + 1;
  while (true) {
    uint32_t owner = 0;
    if (board_.owner.compare_exchange_strong(owner, self,
                                             std::memory_order_acquire)) {
      return true;
    }
    const bool isRank = owner <= static_cast<uint32_t>(ranks_);
    if (!mayGoOn(patience, isRank ? static_cast<int>(owner) - 1 : -1, why)) {
      return false;
    }
  }
}

// After a while, in which that rank should have moved.
bool LaneClaims::mayGoOn(Patience& patience, int awaited, Outcome* why) const {
  const bool inTime = patience.wait(awaited);
  if (failed_.load(std::memory_order_acquire)) {
    *why = Outcome::kFailed;
    return false;
  }
  *why = Outcome::kTimeout;
  return inTime;
}

void LaneClaims::unlock() { board_.owner.store(0, std::memory_order_release); }

}  // namespace transport::base
GLOO_NAMESPACE_END
