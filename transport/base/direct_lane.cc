// One lane: how a rank waits for others there, and what it hears of them.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "gloo/common/logging.h"
#include "transport/base/context.h"
#include "transport/base/direct.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using std::chrono::milliseconds;

// Looks at a line, with pauses, before a clock is looked at.
constexpr int kGlances = 300;
// Without pauses, before the core is given away. Measured, allreduce of 4 bytes
// among 4 ranks on 2 cores: 2.3 us with 4, 2.9 us with 30, 86 us with 2000.
constexpr int kCrowdedGlances = 4;
// At the line of a rank on another core, which may go on any moment: about as
// long as three switches of threads. Measured with 4 ranks on 2 cores: 4 bytes
// to all 3.2 us with none, 3.0 with 2000, 2.8 with 8000; a broadcast of 64 KiB
// 5.3, 5.3, 4.0.
constexpr int kGlancesElsewhere = 8000;
constexpr int kCrowdedYields = 100;
// Neighbours that compute may have the core for milliseconds each, all of them
// in one yield. Most waits end before the first look at the clock.
constexpr int kYieldsPerLook = 4;
constexpr int kGlancesPerYield = 16;
// A sleeper looks up that often, whatever happens.
constexpr milliseconds kNap{1000};
// And so often where it may have missed what it waits for.
constexpr milliseconds kShortNap{1};

// Where slots begin in a page: callers' vectors begin at its beginning most
// often, or where malloc() puts long ones, 16 bytes after it. What a loop reads
// so far behind what it has just written is slow: see gloo/internal/copy.h.
// Measured with 2 ranks, where cores are close, allreduce of 1 and 4 MiB from
// malloc() .87 and .74 of the time with slots at the beginning, from a page .81
// and .69.
constexpr size_t kSlotsInPage = DirectLane::kPage / 2;

size_t bellBytes(int ranks) {
  return DirectLane::pages(2 * static_cast<size_t>(ranks) * sizeof(uint32_t));
}
size_t lineBytes(int ranks) {
  return DirectLane::pages(2 * static_cast<size_t>(ranks) *
                           sizeof(internal::LaneLine));
}

// Between processes: not the private kind.
void sleepOn(std::atomic<uint32_t>& word, uint32_t value,
             const timespec* limit) {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, limit, nullptr, 0);
}

}  // namespace

DirectLane::DirectLane(DirectLanes& lanes, int index, char* memory,
                       size_t slotBytes)
    : lanes_(lanes),
      index_(index),
      memory_(lanes.lent(), lanes.context().size()) {
  rank_ = lanes.context().rank();
  size_ = lanes.context().size();
  crowded_ = lanes.crowded();
  sleepersMakeBarriers_ = lanes.makesBarriers();
  glances_ = crowded_ ? kCrowdedGlances : kGlances;
  slotBytes_ = slotBytes;
  bells_ = reinterpret_cast<std::atomic<uint32_t>*>(memory);
  cores_ = bells_ + size_;
  lines_ = reinterpret_cast<internal::LaneLine*>(memory + bellBytes(size_));
  slots_ = memory + bytesBeforeSlots(size_) + kSlotsInPage;
  failed_ = &lanes.failed();
}

size_t DirectLane::pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

size_t DirectLane::bytesBeforeSlots(int ranks) {
  return bellBytes(ranks) + lineBytes(ranks);
}

size_t DirectLane::memoryBytes(int ranks, size_t slotBytes) {
  return bytesBeforeSlots(ranks) + 2 * static_cast<size_t>(ranks) * slotBytes +
         kPage;
}

void DirectLane::ring(int rank) {
  if (bells_[rank].exchange(0, std::memory_order_seq_cst) != 0) {
    lanes_.countSystemCall();
    wakeShared(bells_[rank]);
  }
}

bool DirectLane::over(int rank, uint64_t round) const {
  // As with the line: who is about to sleep has set its bell before, and who
  // sets one of these looks at the bells afterwards.
  return line(rank, round).round.load(std::memory_order_seq_cst) >= round ||
         lanes_.failed().load(std::memory_order_seq_cst) ||
         lanes_.departed(rank);
}

// Gives the core away now and then, as long as sleep would cost more.
bool DirectLane::spin(int rank, uint64_t round, Deadline deadline) {
  if (lanes_.spinBudget().count() == 0) {
    return over(rank, round);
  }
  return crowded() ? spinCrowded(rank, round, deadline)
                   : spinAlone(rank, round, deadline);
}

bool DirectLane::spinCrowded(int rank, uint64_t round, Deadline deadline) {
  for (int yields = 0; !over(rank, round); yields++) {
    const bool looks = yields % kYieldsPerLook == kYieldsPerLook - 1;
    if (yields >= kCrowdedYields || (looks && deadline.expired())) {
      return false;
    }
    noteCore();
    for (int i = 0; i < kGlancesElsewhere && !sharesCore(rank); i++) {
      if (isThere(rank, round)) {
        return true;
      }
    }
    lanes_.context().domain().spread().look();
    sched_yield();
  }
  return true;
}

bool DirectLane::spinAlone(int rank, uint64_t round, Deadline deadline) {
  const auto since = Deadline::Clock::now();
  const auto until = std::min(deadline.at(), since + lanes_.spinBudget());
  for (auto now = since; !over(rank, round); now = Deadline::Clock::now()) {
    if (now >= until || yielder_.shouldSleep(since, now)) {
      return false;
    }
    yielder_.yield(now, lanes_.context().domain().spread());
    for (int i = 0; i < kGlancesPerYield; i++) {
      if (isThere(rank, round)) {
        return true;
      }
      internal::pauseBetweenLooks();
    }
  }
  return true;
}

internal::Lane::Outcome DirectLane::wait(int rank, uint64_t round,
                                         Deadline deadline) {
  bool done = spin(rank, round, deadline);
  std::atomic<uint32_t>& bell = bells_[rank_];
  while (!done && !deadline.expired()) {
    bell.store(bellFor(rank), std::memory_order_seq_cst);
    auto nap = kNap;
    if (sleepersMakeBarriers_) {
      lanes_.countSystemCall();
      nap = SleepersBarrier::make() ? kNap : kShortNap;
    }
    if (!over(rank, round)) {
      const auto left = std::min(deadline.left(), nap);
      const timespec limit{left.count() / 1000,
                           (left.count() % 1000) * 1000000};
      lanes_.countSystemCall();
      sleepOn(bell, bellFor(rank), &limit);
    }
    bell.store(0, std::memory_order_seq_cst);
    done = over(rank, round);
  }
  // What is there is there, whatever has happened since.
  if (isThere(rank, round)) {
    return Outcome::kThere;
  }
  if (!failed() && lanes_.departed(rank)) {
    lanes_.context().failLeft(rank);
  }
  return failed() ? Outcome::kFailed : Outcome::kTimeout;
}

// A private copy takes as much memory again, on all ranks at once, and time:
// only where somebody may go on writing, who is stopped there or slow.
void DirectLane::withdraw(const internal::Place& place, size_t bytes) noexcept {
  if (!lanes_.othersStop(index_)) {
    SharedAllocations::instance().withdraw(place.memory, place.offset, bytes);
  }
}

// The fences: after the mark the caller may write, and it is looked at after
// the others' reading.
void DirectLane::letGo() noexcept {
  lanes_.claims().close();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool DirectLane::hasLetGo() {
  std::atomic_thread_fence(std::memory_order_acquire);
  return lanes_.claims().isClosed();
}

void DirectLane::tellRepeats() { lanes_.context().tellRepeats(); }

bool DirectLane::reads() const {
  return lanes_.reads().load(std::memory_order_relaxed);
}

bool DirectLane::read(int rank, char* to, uint64_t from, size_t bytes) {
  lanes_.countSystemCall();  // and a look at the process
  lanes_.countSystemCall();
  return lanes_.peer(rank).read(to, from, bytes);
}

void DirectLane::stopReading() {
  if (lanes_.reads().exchange(false, std::memory_order_relaxed)) {
    GLOO_INFO("rank ", rank_,
              ": ranks may not read each other's memory any more: no "
              "collective does");
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
