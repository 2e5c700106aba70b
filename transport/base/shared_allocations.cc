#include "transport/base/shared_allocations.h"

#include <utility>

#include "transport/base/fork.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

uintptr_t beginOf(const SharedAllocation& allocation) {
  return reinterpret_cast<uintptr_t>(allocation.data());
}

}  // namespace

SharedAllocations& SharedAllocations::instance() {
  // Never destroyed: memory may be given back at exit.
  return instanceOfProcess<SharedAllocations>();
}

void SharedAllocations::add(std::shared_ptr<SharedAllocation> allocation) {
  const MutexLock lock(mutex_);
  const uintptr_t begin = beginOf(*allocation);
  const auto named = begins_.emplace(allocation->id(), begin).first;
  try {
    allocations_[begin].allocation = std::move(allocation);
  } catch (...) {
    begins_.erase(named);
    throw;
  }
  version_.fetch_add(1, std::memory_order_release);
}

void SharedAllocations::remove(const SharedAllocation& allocation) {
  const MutexLock lock(mutex_);
  allocations_.erase(beginOf(allocation));
  begins_.erase(allocation.id());
  version_.fetch_add(1, std::memory_order_release);
}

SharedAllocations::Range SharedAllocations::find(uintptr_t data) {
  const MutexLock lock(mutex_);
  Range range;
  range.version = version_.load(std::memory_order_relaxed);
  const auto next = allocations_.upper_bound(data);
  range.end = next == allocations_.end() ? UINTPTR_MAX : next->first;
  if (next != allocations_.begin()) {
    const auto& [begin, entry] = *std::prev(next);
    const uintptr_t end = begin + entry.allocation->bytes();
    if (data < end) {
      return {range.version, begin, end,
              entry.withdrawn ? 0 : entry.allocation->id()};
    }
    range.begin = end;
  }
  return range;
}

// Operations of several contexts may use one allocation, and fail. A copy of it
// takes long: others need not wait for that.
void SharedAllocations::withdraw(uint64_t id, size_t offset,
                                 size_t bytes) noexcept {
  std::shared_ptr<SharedAllocation> allocation;
  {
    const MutexLock lock(mutex_);
    if (Entry* const entry = entryOf(id)) {
      entry->withdrawn = true;
      version_.fetch_add(1, std::memory_order_release);
      allocation = entry->allocation;
    }
  }
  if (allocation != nullptr) {
    allocation->withdraw(offset, bytes);
  }
}

std::shared_ptr<SharedAllocation> SharedAllocations::byId(uint64_t id) {
  const MutexLock lock(mutex_);
  Entry* const entry = entryOf(id);
  return entry == nullptr ? nullptr : entry->allocation;
}

SharedAllocations::Entry* SharedAllocations::entryOf(uint64_t id) {
  const auto found = begins_.find(id);
  return found == begins_.end() ? nullptr : &allocations_.at(found->second);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
