// Containers whose memory starts at a multiple of an alignment.
#pragma once

#include <cstddef>
#include <limits>
#include <new>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

// An alignment that suits the reductions: enough for every vector instruction
// that they use.
constexpr size_t kBufferAlignment = 64;

// Memory at multiples of kAlignment bytes, a power of two and at least that of
// T. Stateless; thread-safe.
template <typename T, size_t kAlignment>
class aligned_allocator {
 public:
  static_assert((kAlignment & (kAlignment - 1)) == 0 &&
                    kAlignment >= alignof(T),
                "a power of two, and enough for the type");

  using value_type = T;

  template <typename U>
  struct rebind {
    using other = aligned_allocator<U, kAlignment>;
  };

  aligned_allocator() noexcept = default;
  template <typename U>
  aligned_allocator(const aligned_allocator<U, kAlignment>&) noexcept {}

  T* allocate(size_t elements) {
    if (elements > std::numeric_limits<size_t>::max() / sizeof(T)) {
      throw std::bad_alloc();
    }
    return static_cast<T*>(
        ::operator new(elements * sizeof(T), std::align_val_t(kAlignment)));
  }

  void deallocate(T* memory, size_t) noexcept {
    ::operator delete(memory, std::align_val_t(kAlignment));
  }

  template <typename U>
  bool operator==(const aligned_allocator<U, kAlignment>&) const noexcept {
    return true;
  }
  template <typename U>
  bool operator!=(const aligned_allocator<U, kAlignment>&) const noexcept {
    return false;
  }
};

GLOO_NAMESPACE_END
