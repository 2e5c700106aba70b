#include "transport/base/direct.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "gloo/common/env.h"
#include "transport/base/context.h"
#include "transport/base/topology.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kPage = 4096;

// Looks at a line before the core is given away. Measured, allreduce of 4 bytes
// among 4 ranks on 2 cores: 2.3 us with 4, 2.9 us with 30, 86 us with 2000.
constexpr int kGlances = 2000;
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
constexpr microseconds kDefaultSpin{500};
// A sleeper looks up that often, whatever happens.
constexpr milliseconds kNap{1000};
// For others to see that the context has failed. They look between rounds, and
// a piece of a vector takes them a few milliseconds at most.
constexpr milliseconds kStopping{100};
constexpr microseconds kStoppingNap{100};

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

constexpr size_t kKiB = 1024;
// Two ranks swap two slots of each half: with chunks of 256 KiB a second-level
// cache has to hold twice that beside the vectors. Measured where it has 1 MiB,
// allreduce of 1 and 4 MiB: 4 to 7 % less time than with 128 KiB; where it has
// 512 KiB, more.
constexpr size_t kSmallSlotOfTwo = 128 * kKiB;
constexpr size_t kLargeSlotOfTwo = 256 * kKiB;
constexpr long kLargeCache = 1024 * kKiB;

// Scratch of all ranks together stays near the caches.
size_t slotBytesOfMany(int ranks) {
  return ranks <= 4    ? 256 * kKiB
         : ranks <= 8  ? 128 * kKiB
         : ranks <= 16 ? 64 * kKiB
         : ranks <= 64 ? 32 * kKiB
                       : 16 * kKiB;
}

// With more ranks than cores each round of each rank costs a switch of threads,
// so rounds should be few. Measured with 8 ranks on 2 cores, alltoall of 1 MiB:
// 330 us with slots of 128 KiB, 280 with 256, 255 with 512, 240 with 1024; of
// 16 MiB: 12.7, 11.0, 10.2, 10.5 ms. 4 ranks, 4 MiB: 780 us with 256 KiB, 738
// with 512, 1030 with 1024.
size_t slotBytesOfCrowd(int ranks) {
  return std::min(512 * kKiB,
                  4096 * kKiB / std::bit_ceil(static_cast<size_t>(ranks)));
}

size_t bellBytes(int ranks) {
  return pages(2 * static_cast<size_t>(ranks) * sizeof(uint32_t));
}
size_t lineBytes(int ranks) {
  return pages(2 * static_cast<size_t>(ranks) * sizeof(internal::LaneLine));
}

// The preface, and the claims.
size_t bytesBeforeLanes(int ranks) {
  return kPage + pages(LaneClaims::memoryBytes(ranks));
}

// Between processes: not the private kind.
void sleepOn(std::atomic<uint32_t>& word, uint32_t value,
             const timespec* limit) {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, limit, nullptr, 0);
}

}  // namespace

// ---- A lane ----

DirectLane::DirectLane(DirectLanes& lanes, int index, char* memory,
                       size_t slotBytes)
    : lanes_(lanes),
      index_(index),
      memory_(lanes.lent(), lanes.context().size()) {
  rank_ = lanes.context().rank();
  size_ = lanes.context().size();
  crowded_ = lanes.crowded();
  glances_ = crowded_ ? kCrowdedGlances : kGlances;
  slotBytes_ = slotBytes;
  bells_ = reinterpret_cast<std::atomic<uint32_t>*>(memory);
  cores_ = bells_ + size_;
  memory += bellBytes(size_);
  lines_ = reinterpret_cast<internal::LaneLine*>(memory);
  slots_ = memory + lineBytes(size_);
  failed_ = &lanes.failed();
}

size_t DirectLane::memoryBytes(int ranks, size_t slotBytes) {
  return bellBytes(ranks) + lineBytes(ranks) +
         2 * static_cast<size_t>(ranks) * slotBytes;
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
    }
  }
  return true;
}

internal::Lane::Outcome DirectLane::waitLong(int rank, uint64_t round,
                                             Deadline deadline) {
  bool done = spin(rank, round, deadline);
  std::atomic<uint32_t>& bell = bells_[rank_];
  while (!done && !deadline.expired()) {
    bell.store(1, std::memory_order_seq_cst);
    if (!over(rank, round)) {
      const auto left = std::min(deadline.left(), kNap);
      const timespec limit{left.count() / 1000,
                           (left.count() % 1000) * 1000000};
      lanes_.countSystemCall();
      sleepOn(bell, 1, &limit);
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

// ---- All lanes ----

size_t DirectLanes::slotBytesFor(int ranks, bool crowded) {
  if (ranks > 2) {
    return crowded ? slotBytesOfCrowd(ranks) : slotBytesOfMany(ranks);
  }
#ifdef _SC_LEVEL2_CACHE_SIZE  // of glibc; 0 or -1 where it is not known
  if (sysconf(_SC_LEVEL2_CACHE_SIZE) >= kLargeCache) {
    return kLargeSlotOfTwo;
  }
#endif
  return kSmallSlotOfTwo;
}

bool DirectLanes::maySlotsHave(int ranks, size_t slotBytes) {
  return ranks > 2
             ? slotBytes == slotBytesOfMany(ranks) ||
                   slotBytes == slotBytesOfCrowd(ranks)
             : slotBytes == kSmallSlotOfTwo || slotBytes == kLargeSlotOfTwo;
}

size_t DirectLanes::memoryBytes(int ranks, size_t slotBytes) {
  return bytesBeforeLanes(ranks) +
         LaneClaims::kLanes * DirectLane::memoryBytes(ranks, slotBytes);
}

// What a rank writes, several others read.
std::vector<MemorySharer::Part> DirectLanes::partsOf(
    size_t slotBytes, const std::vector<RankCores>& ranks) {
  const auto size = static_cast<int>(ranks.size());
  std::vector<MemorySharer::Part> parts;
  for (size_t lane = 0; lane < LaneClaims::kLanes; lane++) {
    size_t at = bytesBeforeLanes(size) +
                lane * DirectLane::memoryBytes(size, slotBytes) +
                bellBytes(size) + lineBytes(size);
    for (int half = 0; half < 2; half++) {
      for (const RankCores& rank : ranks) {
        if (Topology::mayBe(rank.node)) {
          parts.push_back({at, slotBytes, rank.node});
        }
        at += slotBytes;
      }
    }
  }
  return parts;
}

DirectLanes::Preface& DirectLanes::preface(const SharedMemory& memory) {
  static_assert(sizeof(Preface) <= kPage);
  return *reinterpret_cast<Preface*>(memory.data());
}

DirectLanes::DirectLanes(Context& context, std::shared_ptr<SharedMemory> memory,
                         size_t slotBytes)
    : context_(context),
      memory_(std::move(memory)),
      crowded_(preface(*memory_).crowded != 0),
      spinBudget_(Environment::fromEnvironment().spin.value_or(kDefaultSpin)),
      departed_(std::make_unique<std::atomic<bool>[]>(
          static_cast<size_t>(context.size()))),
      claims_(memory_->data() + kPage, context.rank(), context.size(), failed_),
      lent_(context,
            std::vector<MemorySharer::Name>(
                preface(*memory_).names.begin(),
                preface(*memory_).names.begin() + context.size()),
            preface(*memory_).token) {
  char* at = memory_->data() + bytesBeforeLanes(context.size());
  for (auto& lane : lanes_) {
    const auto index = static_cast<int>(&lane - lanes_.data());
    lane = std::make_unique<DirectLane>(*this, index, at, slotBytes);
    at += DirectLane::memoryBytes(context.size(), slotBytes);
  }
}

DirectLanes::Entry DirectLanes::enter(uint64_t tag, milliseconds timeout) {
  using Outcome = LaneClaims::Outcome;
  origin_.check("context");
  int lane = 0;
  int culprit = -1;
  milliseconds waited{0};
  switch (claims_.enter(tag, timeout, &lane, &culprit, &waited)) {
    case Outcome::kLane:
      return {lanes_[static_cast<size_t>(lane)].get(), false, waited};
    case Outcome::kInUse:
      return {nullptr, true, waited};
    case Outcome::kTimeout:
      failStopped(timeout, culprit);
      return {};
    case Outcome::kOverwritten:
      failOverwritten();
      return {};
    case Outcome::kLinks:
    case Outcome::kFailed:
      break;
  }
  return {nullptr, false, waited};
}

void DirectLanes::leave(internal::Lane& lane) {
  claims_.leave(static_cast<DirectLane&>(lane).index());
}

bool DirectLanes::othersStop(int lane) noexcept {
  claims_.close();
  claims_.stop(lane);
  const Deadline deadline = Deadline::after(kStopping);
  for (int rank = 0; rank < context_.size(); rank++) {
    while (rank != context_.rank() && claims_.works(lane, rank) &&
           !context_.peerHasEnded(rank)) {
      if (deadline.expired()) {
        return false;
      }
      std::this_thread::sleep_for(kStoppingNap);
    }
  }
  return true;
}

void DirectLanes::failStopped(milliseconds timeout, int culprit) {
  context_.fail(internal::makeCause([&] {
    return context_.causeOf(
        internal::Cause::Kind::kTimeout, culprit,
        MakeString("rank ", context_.rank(), ": Timed out after ",
                   timeout.count(),
                   " ms waiting for the lanes of direct collectives, which "
                   "rank ",
                   culprit, " was about to claim"));
  }));
}

void DirectLanes::failOverwritten() {
  context_.fail(internal::makeCause([&] {
    return context_.causeOf(
        internal::Cause::Kind::kIo, -1,
        MakeString("rank ", context_.rank(),
                   ": the claims of the lanes of direct collectives, in memory "
                   "that all ranks share, were overwritten: one of them is "
                   "broken"));
  }));
}

void DirectLanes::fail() {
  failed_.store(true, std::memory_order_seq_cst);
  for (auto& lane : lanes_) {
    lane->wake();
  }
}

void DirectLanes::depart(int rank) {
  departed_[static_cast<size_t>(rank)].store(true, std::memory_order_seq_cst);
  for (auto& lane : lanes_) {
    lane->wake();
  }
}

void DirectLanes::countSystemCall() { context_.device().countDirectCall(); }

}  // namespace transport::base

internal::Lane::~Lane() = default;
internal::Direct::~Direct() = default;

GLOO_NAMESPACE_END
