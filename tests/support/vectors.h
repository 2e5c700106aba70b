// Vectors of the tests, in ordinary memory or in that of the shared allocator.
#pragma once

#include <cstddef>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "gloo/transport/shm/allocate.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

enum class VectorMemory {
  kOrdinary,
  kShared,  // an allocation for each vector
  kArena    // one for all of the thread: nothing is handed over after the first
};

// What vectors that are made from now on are in. Of this thread.
class VectorArena {
 public:
  static VectorArena& mine() {
    static thread_local VectorArena arena;
    return arena;
  }
  void use(VectorMemory memory) { memory_ = memory; }

  void* take(size_t bytes, std::align_val_t alignment) {
    if (memory_ == VectorMemory::kArena && bytes <= kBytes - used_) {
      if (!arena_) {
        arena_ = transport::shm::allocate(kBytes);
      }
      char* const at = static_cast<char*>(arena_.data()) + used_;
      used_ += (bytes + 63) / 64 * 64;
      vectors_++;
      return at;
    }
    if (memory_ != VectorMemory::kOrdinary && bytes > 0) {
      auto memory = transport::shm::allocate(bytes);
      void* const at = memory.data();
      own_.emplace(at, std::move(memory));
      return at;
    }
    return ::operator new(bytes, alignment);
  }
  void give(void* at, std::align_val_t alignment) {
    const auto* const begin = static_cast<const char*>(arena_.data());
    const auto* const byte = static_cast<const char*>(at);
    if (begin != nullptr && begin <= byte && byte < begin + kBytes) {
      used_ = --vectors_ == 0 ? 0 : used_;
    } else if (own_.erase(at) == 0) {
      ::operator delete(at, alignment);
    }
  }

 private:
  static constexpr size_t kBytes = size_t{64} << 20;
  VectorMemory memory_ = VectorMemory::kOrdinary;
  transport::shm::Memory arena_;
  size_t used_ = 0;
  size_t vectors_ = 0;
  std::map<void*, transport::shm::Memory> own_;
};

// Stateless; a vector is destroyed by the thread that made it.
template <typename T>
struct VectorAllocator {
  using value_type = T;
  VectorAllocator() = default;
  template <typename U>
  VectorAllocator(const VectorAllocator<U>&) {}  // NOLINT: converting
  T* allocate(size_t n) {
    return static_cast<T*>(VectorArena::mine().take(n * sizeof(T), kAlign));
  }
  void deallocate(T* at, size_t) { VectorArena::mine().give(at, kAlign); }
  bool operator==(const VectorAllocator&) const { return true; }

 private:
  static constexpr std::align_val_t kAlign{alignof(T)};
};

template <typename T>
using Vector = std::vector<T, VectorAllocator<T>>;

}  // namespace testing_support
GLOO_NAMESPACE_END
