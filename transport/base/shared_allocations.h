// Memory of this process that other ranks of the host may have: what the shared
// allocator has made, found by address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

#include "gloo/common/thread_annotations.h"
#include "gloo/config.h"
#include "transport/base/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// An allocation, in the process that made it or in another that has borrowed
// it. Immutable but for its bytes; thread-safe.
class SharedAllocation : public SharedMemory {
 public:
  virtual uint64_t id() const = 0;   // random, not 0
  virtual size_t bytes() const = 0;  // from data() on
  // Its owner has given it back: the bytes mean nothing any more.
  virtual bool freed() const = 0;
  // -1: not its owner's.
  virtual int descriptor() const = 0;
  // Nobody else's writes to these bytes are seen any more, once it has
  // returned. Owner only.
  virtual void withdraw(size_t offset, size_t bytes) noexcept = 0;
  // Whether that holds for some of these, withdrawn with what has a page in
  // common with them. Owner only.
  virtual bool isPrivate(size_t offset, size_t bytes) = 0;
};

// Thread-safe. A forked child has its own, which begins empty.
class SharedAllocations {
 public:
  static SharedAllocations& instance();

  void add(std::shared_ptr<SharedAllocation> allocation);
  void remove(const SharedAllocation& allocation);

  // Of changes so far. What find() says holds as long as this is the same; at 0
  // there has never been anything.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // The largest range around an address that is all of one allocation, or of
  // none (id 0).
  struct Range {
    uint64_t version = 0;
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint64_t id = 0;

    bool holds(uintptr_t data, size_t bytes) const {
      return begin <= data && data < end && bytes <= end - data;
    }
  };
  Range find(uintptr_t data);

  // An operation that has failed used these bytes, and no other one will find
  // the allocation. Does nothing if it is gone.
  void withdraw(uint64_t id, size_t offset, size_t bytes) noexcept;

  // Null: there is none of that name.
  std::shared_ptr<SharedAllocation> byId(uint64_t id);

 private:
  Mutex mutex_;
  std::atomic<uint64_t> version_{0};
  struct Entry {
    std::shared_ptr<SharedAllocation> allocation;
    bool withdrawn = false;
  };
  Entry* entryOf(uint64_t id) GLOO_REQUIRES(mutex_);

  // By their first byte, which is found by the name.
  std::map<uintptr_t, Entry> allocations_ GLOO_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, uintptr_t> begins_ GLOO_GUARDED_BY(mutex_);
};

}  // namespace transport::base
GLOO_NAMESPACE_END
