// The lanes of a context, in memory that all its ranks have mapped; see
// gloo/internal/direct.h.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/direct.h"
#include "transport/base/crowding.h"
#include "transport/base/fork.h"
#include "transport/base/lane_claims.h"
#include "transport/base/lent_memory.h"
#include "transport/base/link.h"
#include "transport/base/yielder.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Context;
class DirectLanes;

class DirectLane final : public internal::Lane {
 public:
  DirectLane(DirectLanes& lanes, int index, char* memory, size_t slotBytes);

  int index() const { return index_; }

  // This rank's thread in it, if it sleeps, looks again.
  void wake() { ring(rank_); }

  // Each kind of its memory begins a page.
  static constexpr size_t kPage = 4096;
  static size_t pages(size_t bytes);
  static size_t memoryBytes(int ranks, size_t slotBytes);
  static size_t bytesBeforeSlots(int ranks);

  internal::Place placeOf(const void* data, size_t bytes,
                          bool* isNew) override {
    return memory_.placeOf(data, bytes, isNew);
  }
  void lend(uint64_t memory) override { memory_.lend(memory); }
  void settle(uint64_t memory, bool shared) override {
    memory_.settle(memory, shared);
  }
  char* map(int rank, const internal::Place& place, size_t bytes,
            bool isNew) override {
    return memory_.map(rank, place, bytes, isNew);
  }
  void withdraw(const internal::Place& place, size_t bytes) noexcept override;
  bool isWithdrawn(const internal::Place& place, size_t bytes) override {
    return memory_.isWithdrawn(place, bytes);
  }
  void letGo() noexcept override;
  bool hasLetGo() override;
  void tellRepeats() override;
  Outcome wait(int rank, uint64_t round, Deadline deadline) override;
  bool reads() const override;
  bool read(int rank, char* to, uint64_t from, size_t bytes) override;
  void stopReading() override;

 private:
  void ring(int rank) override;
  bool spin(int rank, uint64_t round, Deadline deadline);
  bool spinCrowded(int rank, uint64_t round, Deadline deadline);
  bool spinAlone(int rank, uint64_t round, Deadline deadline);
  bool over(int rank, uint64_t round) const;

  DirectLanes& lanes_;
  const int index_;
  Yielder yielder_;
  LaneMemory memory_;
};

class DirectLanes final : public internal::Direct {
 public:
  // Of each slot, as this machine likes it, and whether a rank of another idea
  // may have chosen that.
  static size_t slotBytesFor(int ranks, bool crowded);
  static bool maySlotsHave(int ranks, size_t slotBytes);
  // Of the memory for so many ranks.
  static size_t memoryBytes(int ranks, size_t slotBytes);

  // Of that memory: the slots of each rank whose node is known, and can be.
  static std::vector<MemorySharer::Part> partsOf(
      size_t slotBytes, const std::vector<RankCores>& ranks);

  // At the beginning of the memory; written before the others have it.
  struct Preface {
    // Where each rank is handed memory.
    std::array<MemorySharer::Name, kMaxRanks> names;
    // Of this memory, and of what they lend: MemorySharer::tokenOf().
    MemorySharer::Name token;
    // There are more ranks than cores: see isCrowded().
    uint8_t crowded;
    // All ranks may read the memory of all others.
    uint8_t reads;
    // Who is about to sleep makes a barrier: see publish() of a lane.
    uint8_t barriers;
  };
  static Preface& preface(const SharedMemory& memory);

  // Whether this process can be one whose ranks make barriers before they
  // sleep, and polls for a while before.
  static bool mayMakeBarriers();

  // By rank, but for its own: what reads the others' memory. Empty: not all of
  // it may be read.
  using Peers = std::vector<std::shared_ptr<const PeerMemory>>;

  DirectLanes(Context& context, std::shared_ptr<SharedMemory> memory,
              size_t slotBytes, Peers peers);

  size_t slotBytes() const override { return lanes_[0]->slotBytes(); }
  bool crowded() const override { return crowded_; }
  Entry enter(uint64_t tag, std::chrono::milliseconds timeout) override;
  void goOn(internal::Lane& lane) override;
  void leave(internal::Lane& lane) override;
  void takeBack(uint64_t tag, std::chrono::milliseconds timeout) override;
  bool hasGoneOn(uint64_t tag) const override { return claims_.hasGoneOn(tag); }

  using Lanes = std::array<std::unique_ptr<DirectLane>, LaneClaims::kLanes>;
  const Lanes& lanes() const { return lanes_; }
  // What threads of this rank have stored in lanes before they published is
  // seen by this one, or they see what this one has stored before.
  void awaitPublished();

  // The context has failed or was closed, and a rank has left: whoever waits
  // looks again. Any thread.
  void fail();
  void depart(int rank);

  // ---- For lanes. ----
  Context& context() { return context_; }
  LentMemory& lent() { return lent_; }
  bool makesBarriers() const { return makesBarriers_; }
  std::chrono::microseconds spinBudget() const { return spinBudget_; }
  const std::atomic<bool>& failed() const { return failed_; }
  bool departed(int rank) const {
    return departed_[static_cast<size_t>(rank)].load(std::memory_order_seq_cst);
  }
  void countSystemCall();
  LaneClaims& claims() { return claims_; }
  std::atomic<bool>& reads() { return reads_; }
  const PeerMemory& peer(int rank) const {
    return *peers_[static_cast<size_t>(rank)];
  }
  // After a failure, when this rank is through with its operation in that lane:
  // whether the others are as well, within a while.
  bool othersStop(int lane) noexcept;

 private:
  Entry enterOther(uint64_t tag, std::chrono::milliseconds timeout);
  void failStopped(std::chrono::milliseconds timeout, int culprit);
  void failOverwritten();

  Origin origin_;
  Context& context_;
  const std::shared_ptr<SharedMemory> memory_;
  const bool crowded_;
  const bool makesBarriers_;
  const std::chrono::microseconds spinBudget_;
  std::atomic<bool> failed_{false};
  std::unique_ptr<std::atomic<bool>[]> departed_;
  LaneClaims claims_;
  LentMemory lent_;
  const Peers peers_;
  std::atomic<bool> reads_;
  Lanes lanes_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
