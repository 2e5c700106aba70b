// The operator new of a program whose tests count allocations, or refuse them.
// Included by one source of it, which defines mayAllocate(); not under a
// sanitizer, which has one of its own.
#pragma once

#include <cstdlib>
#include <new>

// Asked for each allocation, in the thread that wants it; false:
// std::bad_alloc.
bool mayAllocate();

namespace own_new {

template <typename Allocate>
void* allocated(const Allocate& allocate) {
  if (mayAllocate()) {
    if (void* memory = allocate()) {
      return memory;
    }
  }
  throw std::bad_alloc();
}

}  // namespace own_new

void* operator new(size_t bytes) {
  return own_new::allocated(
      [&] { return std::malloc(bytes == 0 ? 1 : bytes); });
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto a = static_cast<size_t>(alignment);
  return own_new::allocated(
      [&] { return std::aligned_alloc(a, (bytes + a - 1) / a * a); });
}
// Not inlined: gcc would take free() for the wrong way to release what comes of
// an operator new that it does not look into.
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  operator delete(memory);
}
