#include "transport/base/lane_claims.h"

#include <sched.h>

#include "gloo/common/deadline.h"
#include "gloo/internal/hash.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPair = 2 * kLine;
// Yields, for what lasts no longer than a few instructions of another thread.
constexpr int kPatience = 1 << 20;
// A name is a tag plus one; a free lane has none, 0.
constexpr uint64_t kTaken = UINT64_MAX;  // being claimed

size_t pairs(size_t bytes) { return (bytes + kPair - 1) / kPair * kPair; }

}  // namespace

struct alignas(kPair) LaneClaims::Board {
  alignas(kLine) std::atomic<uint32_t> owner;  // of the lock: rank + 1
  // Under the lock.
  uint32_t next;                                       // lane to be claimed
  uint32_t refusing;                                   // 1: no lane is claimed
  alignas(kLine) std::atomic<uint64_t> names[kLanes];  // changed under the lock
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

std::atomic<uint64_t>& LaneClaims::count(int lane, int rank) const {
  auto* const counts = reinterpret_cast<Count*>(&board_ + 1);
  return counts[lane * ranks_ + rank].value;
}

// Of each rank; under the lock.
uint64_t* LaneClaims::sums() const {
  auto* const counts = reinterpret_cast<Count*>(&board_ + 1);
  return reinterpret_cast<uint64_t*>(counts + kLanes * ranks_);
}

int LaneClaims::owner() const {
  const uint32_t owner = board_.owner.load(std::memory_order_relaxed);
  return owner <= static_cast<uint32_t>(ranks_) ? static_cast<int>(owner) - 1
                                                : -1;
}

LaneClaims::Outcome LaneClaims::enter(uint64_t tag,
                                      std::chrono::milliseconds timeout,
                                      int* lane) {
  const uint64_t name = tag + 1;
  for (int i = 0; i < kLanes; i++) {
    if (known_[i].load(std::memory_order_relaxed) == name) {
      *lane = i;
      const Outcome outcome = enterKnown(i, name);
      if (outcome != Outcome::kLinks) {
        return outcome;
      }
    }
  }
  Outcome outcome = Outcome::kFailed;
  if (lock(timeout, &outcome)) {
    outcome = enterLocked(name, lane);
    unlock();
  }
  return outcome;
}

void LaneClaims::leave(int lane) {
  std::atomic<uint64_t>& mine = count(lane, rank_);
  running_[lane].store(0, std::memory_order_relaxed);
  mine.store(mine.load(std::memory_order_relaxed) + 1,
             std::memory_order_release);
}

bool LaneClaims::isRunning(uint64_t tag) const {
  for (int lane = 0; lane < kLanes; lane++) {
    if (runs(lane, tag + 1)) {
      return true;
    }
  }
  return false;
}

// This thread has made the count odd, for that operation.
LaneClaims::Outcome LaneClaims::entered(int lane, uint64_t name) {
  running_[lane].store(name, std::memory_order_relaxed);
  return Outcome::kLane;
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
  if (claim.load(std::memory_order_seq_cst) == name) {
    return entered(lane, name);
  }
  mine.store(before, std::memory_order_release);
  return Outcome::kLinks;
}

LaneClaims::Outcome LaneClaims::enterLocked(uint64_t name, int* lane) {
  for (int i = 0; i < kLanes; i++) {
    if (board_.names[i].load(std::memory_order_seq_cst) == name) {
      *lane = i;
      return enterClaimed(i, name);
    }
  }
  *lane = board_.refusing != 0 ? -1 : claimIdle(name);
  if (*lane < 0) {
    refuse(name);
    return Outcome::kLinks;
  }
  return enterClaimed(*lane, name);
}

LaneClaims::Outcome LaneClaims::enterClaimed(int lane, uint64_t name) {
  known_[lane].store(name, std::memory_order_relaxed);
  std::atomic<uint64_t>& mine = count(lane, rank_);
  for (int i = 0; i < kPatience; i++) {
    uint64_t before = mine.load(std::memory_order_acquire);
    if (before % 2 == 0 && mine.compare_exchange_strong(
                               before, before + 1, std::memory_order_seq_cst)) {
      return entered(lane, name);
    }
    if (runs(lane, name)) {
      return Outcome::kInUse;
    }
    // A thread that knew the lane by another name has yet to see this one, or
    // one that has begun with this one has yet to say so.
    sched_yield();
  }
  return Outcome::kTimeout;
}

void LaneClaims::refuse(uint64_t name) {
  uint64_t* const sums = this->sums();
  sums[rank_] += internal::mixed(name);
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

bool LaneClaims::lock(std::chrono::milliseconds timeout, Outcome* why) {
  const auto taken = [this] {
    uint32_t nobody = 0;
    return board_.owner.compare_exchange_strong(
        nobody, static_cast<uint32_t>(rank_) + 1, std::memory_order_acquire);
  };
  if (taken()) {
    return true;
  }
  const Deadline deadline = Deadline::after(timeout);
  while (true) {
    sched_yield();
    if (taken()) {
      return true;
    }
    if (failed_.load(std::memory_order_acquire)) {
      *why = Outcome::kFailed;
      return false;
    }
    if (deadline.expired()) {
      *why = Outcome::kTimeout;
      return false;
    }
  }
}

void LaneClaims::unlock() { board_.owner.store(0, std::memory_order_release); }

}  // namespace transport::base
GLOO_NAMESPACE_END
