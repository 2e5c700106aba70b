// A reduction, whether it is a kernel of the library's or the caller's
// function.
#pragma once

#include <cstddef>

#include "gloo/config.h"
#include "gloo/internal/kernels.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// c = a (op) b on `bytes` bytes of elements. Borrows the function.
struct Reducer {
  internal::Kernel kernel = nullptr;                   // if known, else
  const internal::ReduceFunction* function = nullptr;  // else nothing to do
  size_t elementSize = 1;

  // What it does, and how long that takes, is the caller's.
  bool isForeign() const { return kernel == nullptr && function != nullptr; }

  void operator()(void* c, const void* a, const void* b, size_t bytes) const {
    if (kernel != nullptr) {
      kernel(c, a, b, bytes / elementSize, nullptr);
    } else if (function != nullptr) {
      (*function)(c, a, b, bytes / elementSize);
    }
  }
  // REQUIRES: a kernel, of a reduction. The result to both places.
  void toBoth(void* c, void* also, const void* a, const void* b,
              size_t bytes) const {
    kernel(c, a, b, bytes / elementSize, also);
  }
};

}  // namespace algorithms
GLOO_NAMESPACE_END
