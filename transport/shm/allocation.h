// What the shared allocator hands out, on the side of its owner and of those
// who have borrowed it: sealed memory whose last page says which it is and
// whether its owner still has it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gloo/common/thread_annotations.h"
#include "gloo/config.h"
#include "transport/base/fork.h"
#include "transport/base/shared_allocations.h"
#include "transport/shm/sealed_memory.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
namespace shm {

// Thread-safe, but for free().
class Allocation final : public base::SharedAllocation {
 public:
  // At least `bytes`. Throws IoException at limits of the system.
  static std::shared_ptr<Allocation> make(size_t bytes, size_t alignment);

  // What a peer has handed over; in a mapping of its own, also where the peer
  // is in this process. Throws IoException unless it is the allocation of this
  // name, whose pages are there to stay.
  static std::shared_ptr<Allocation> borrow(base::UniqueFd memory, uint64_t id);

  char* data() const override { return memory_->data(); }
  size_t bytes() const override { return bytes_; }
  uint64_t id() const override { return id_; }
  bool freed() const override {
    // relaxed: nothing is read because of it
    return label().freed.load(std::memory_order_relaxed) != 0;
  }
  // What is mapped here is what its owner sees.
  bool current() const {
    return !freed() && label().withdrawn.load(std::memory_order_relaxed) == 0;
  }
  int descriptor() const override;
  void withdraw(size_t offset, size_t bytes) noexcept override;
  bool isPrivate(size_t offset, size_t bytes) override;

  // Gives the pages back, for all who have it mapped. Owner only.
  void free() noexcept;
  bool inherited() const { return origin_.inherited(); }

 private:
  // Of the last page.
  struct Label {
    char magic[8];
    uint64_t id;
    std::atomic<uint32_t> freed;
    std::atomic<uint32_t> withdrawn;  // in part
  };

  Allocation(std::unique_ptr<SealedMemory> memory, size_t bytes, uint64_t id)
      : memory_(std::move(memory)), bytes_(bytes), id_(id) {}
  Label& label() const {
    return *reinterpret_cast<Label*>(memory_->data() + bytes_);
  }

  const std::unique_ptr<SealedMemory> memory_;
  Mutex withdrawing_;
  const size_t bytes_;
  const uint64_t id_;
  const base::Origin origin_;
};

}  // namespace shm
}  // namespace transport
GLOO_NAMESPACE_END
