#include "transport/base/direct.h"

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

constexpr size_t kPage = DirectLane::kPage;
constexpr microseconds kDefaultSpin{500};
// Who sleeps sooner makes no barriers, which take 1 to 20 us.
constexpr microseconds kPatient{50};
// For others to see that the context has failed. They look between rounds, and
// a piece of a vector takes them a few milliseconds at most.
constexpr milliseconds kStopping{100};
constexpr microseconds kStoppingNap{100};

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

microseconds ownSpinBudget() {
  return Environment::fromEnvironment().spin.value_or(kDefaultSpin);
}

// The preface, and the claims.
size_t bytesBeforeLanes(int ranks) {
  return kPage + DirectLane::pages(LaneClaims::memoryBytes(ranks));
}

}  // namespace

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

// What a rank writes, several others read. Slots begin in a page, which goes
// with the slot that begins there; that in which the last one ends is its own.
std::vector<MemorySharer::Part> DirectLanes::partsOf(
    size_t slotBytes, const std::vector<RankCores>& ranks) {
  const auto size = static_cast<int>(ranks.size());
  std::vector<MemorySharer::Part> parts;
  for (size_t lane = 0; lane < LaneClaims::kLanes; lane++) {
    size_t at = bytesBeforeLanes(size) +
                lane * DirectLane::memoryBytes(size, slotBytes) +
                DirectLane::bytesBeforeSlots(size);
    for (int half = 0; half < 2; half++) {
      for (const RankCores& rank : ranks) {
        const bool isLast = half == 1 && &rank == &ranks.back();
        const size_t bytes = slotBytes + (isLast ? kPage : 0);
        if (Topology::mayBe(rank.node)) {
          parts.push_back({at, bytes, rank.node});
        }
        at += bytes;
      }
    }
  }
  return parts;
}

DirectLanes::Preface& DirectLanes::preface(const SharedMemory& memory) {
  static_assert(sizeof(Preface) <= kPage);
  return *reinterpret_cast<Preface*>(memory.data());
}

bool DirectLanes::mayMakeBarriers() {
  return ownSpinBudget() >= kPatient && SleepersBarrier::supported();
}

DirectLanes::DirectLanes(Context& context, std::shared_ptr<SharedMemory> memory,
                         size_t slotBytes, Peers peers)
    : context_(context),
      memory_(std::move(memory)),
      crowded_(preface(*memory_).crowded != 0),
      makesBarriers_(preface(*memory_).barriers != 0),
      spinBudget_(ownSpinBudget()),
      departed_(std::make_unique<std::atomic<bool>[]>(
          static_cast<size_t>(context.size()))),
      claims_(memory_->data() + kPage, context.rank(), context.size(), failed_),
      lent_(context,
            std::vector<MemorySharer::Name>(
                preface(*memory_).names.begin(),
                preface(*memory_).names.begin() + context.size()),
            preface(*memory_).token),
      peers_(std::move(peers)),
      reads_(preface(*memory_).reads != 0 && !peers_.empty()) {
  char* at = memory_->data() + bytesBeforeLanes(context.size());
  for (auto& lane : lanes_) {
    const auto index = static_cast<int>(&lane - lanes_.data());
    lane = std::make_unique<DirectLane>(*this, index, at, slotBytes);
    at += DirectLane::memoryBytes(context.size(), slotBytes);
  }
}

DirectLanes::Entry DirectLanes::enter(uint64_t tag, milliseconds timeout) {
  origin_.check("context");
  // To enter takes until what this thread has stored before is seen by others.
  // The line comes meanwhile. Measured with 2 ranks that share no cache,
  // allreduce of 4 bytes 486 ns without and 416 with, of 64 bytes 561 and 421.
  if (const int expected = claims_.expected(tag); expected >= 0) {
    DirectLane* const lane = lanes_[static_cast<size_t>(expected)].get();
    lane->fetchLines();
    const LaneClaims::Outcome outcome = claims_.enterExpected(expected, tag);
    if (outcome == LaneClaims::Outcome::kLane) {
      return {lane, false, milliseconds{0}};
    }
    if (outcome == LaneClaims::Outcome::kOverwritten) {
      failOverwritten();
      return {};
    }
  }
  return enterOther(tag, timeout);
}

[[gnu::noinline]] DirectLanes::Entry DirectLanes::enterOther(
    uint64_t tag, milliseconds timeout) {
  using Outcome = LaneClaims::Outcome;
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

void DirectLanes::goOn(internal::Lane& lane) {
  claims_.goOn(static_cast<DirectLane&>(lane).index());
}

void DirectLanes::leave(internal::Lane& lane) {
  claims_.leave(static_cast<DirectLane&>(lane).index());
}

void DirectLanes::takeBack(uint64_t tag, milliseconds timeout) {
  int culprit = -1;
  if (claims_.takeBack(tag, timeout, &culprit) ==
      LaneClaims::Outcome::kTimeout) {
    failStopped(timeout, culprit);
  }
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

// If the kernel refuses, a thread that is just between the two looks again when
// it waits, or at the next operation.
void DirectLanes::awaitPublished() {
  if (makesBarriers_) {
    countSystemCall();
    (void)SleepersBarrier::make();
  }
}

void DirectLanes::countSystemCall() { context_.device().countDirectCall(); }

}  // namespace transport::base

internal::Lane::~Lane() = default;
internal::Direct::~Direct() = default;

GLOO_NAMESPACE_END
