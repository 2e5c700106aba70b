// What the ranks of a context share beside the lanes: memory of the shared
// allocator. Its owner hands it to all others when it is
// first used in the context, each of them maps it when it is first told of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "gloo/common/thread_annotations.h"
#include "gloo/config.h"
#include "gloo/internal/direct.h"
#include "transport/base/fork.h"
#include "transport/base/link.h"
#include "transport/base/shared_allocations.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Context;

// Of a context. Thread-safe.
class LentMemory {
 public:
  using Name = MemorySharer::Name;
  enum class State : uint8_t {
    kNew,         // not used yet
    kHandedOver,  // whether all have it is not known yet
    kShared,      // all ranks have it
    kRefused      // not to be had by all
  };

  // `names`: where each rank takes memory. `token`: what they alone know.
  LentMemory(Context& context, const std::vector<Name>& names,
             const Name& token);
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  State stateOf(uint64_t id);
  // Hands it over, unless that was done.
  void lend(uint64_t id);
  // Limits may have stood in the way (so many descriptors at a time): it is new
  // again, some times.
  void settle(uint64_t id, bool shared);

  // Null: it is not to be had. Stays mapped as long as somebody has it, or its
  // owner.
  // isNew: its owner has just lent it, maybe once more.
  std::shared_ptr<const SharedAllocation> borrow(uint64_t id, bool isNew);
  // It is here, and may have been handed over once more: not all had got it.
  void refuse(uint64_t id) noexcept;

 private:
  struct Lent {
    State state = State::kNew;
    int failures = 0;
  };
  static constexpr int kMostFailures = 3;

  Context& context_;
  std::vector<MemorySharer::Taker> takers_;
  const Name token_;
  Origin origin_;
  Mutex mutex_;
  std::map<uint64_t, Lent> lent_ GLOO_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<const SharedAllocation>> borrowed_
      GLOO_GUARDED_BY(mutex_);
};

// What one lane has found of it, so that it need not ask while nothing changes.
// One thread.
class LaneMemory {
 public:
  LaneMemory(LentMemory& lent, int ranks)
      : lent_(lent), borrowed_(static_cast<size_t>(ranks)) {}

  internal::Place placeOf(const void* data, size_t bytes, bool* isNew);
  char* map(int rank, const internal::Place& place, size_t bytes, bool isNew);
  void lend(uint64_t id) { lent_.lend(id); }
  void settle(uint64_t id, bool shared);
  bool isWithdrawn(const internal::Place& place, size_t bytes) const;

 private:
  struct Own {
    SharedAllocations::Range range;
    LentMemory::State state = LentMemory::State::kNew;
  };
  static constexpr size_t kOwn = 8;
  static constexpr size_t kBorrowed = 4;  // of each rank
  struct Borrowed {
    std::array<std::shared_ptr<const SharedAllocation>, kBorrowed> memory;
    size_t last = 0;  // that was used
  };

  Own& lookUp(uintptr_t data, size_t bytes, uint64_t version);
  const SharedAllocation* find(Borrowed& borrowed, uint64_t id);
  const SharedAllocation* borrow(Borrowed& borrowed, uint64_t id, bool isNew);

  LentMemory& lent_;
  std::array<Own, kOwn> own_;
  size_t nextOwn_ = 0;
  uint64_t version_ = 0;  // at the last placeOf()
  std::vector<Borrowed> borrowed_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
