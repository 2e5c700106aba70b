// The element-wise reductions that collectives are given, as functions of
// untyped memory and of typed pointers. For the built-in types only the
// library defines them, vectorised, so that their addresses are the same
// everywhere; for any other type T they need its operators + * <.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "gloo/config.h"
#include "gloo/internal/kernels.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// c[i] = a[i] op b[i] for 0 <= i < n. c may be equal to a or to b. What NaN,
// signed zeros, overflow and rounding do for the built-in types is said in
// gloo/internal/kernels.h.
template <typename T>
void sum(void* c, const void* a, const void* b, size_t n) {
  auto* result = static_cast<T*>(c);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (size_t i = 0; i < n; i++) {
    result[i] = left[i] + right[i];
  }
}

template <typename T>
void product(void* c, const void* a, const void* b, size_t n) {
  auto* result = static_cast<T*>(c);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (size_t i = 0; i < n; i++) {
    result[i] = left[i] * right[i];
  }
}

template <typename T>
void max(void* c, const void* a, const void* b, size_t n) {
  auto* result = static_cast<T*>(c);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (size_t i = 0; i < n; i++) {
    result[i] = left[i] < right[i] ? right[i] : left[i];
  }
}

template <typename T>
void min(void* c, const void* a, const void* b, size_t n) {
  auto* result = static_cast<T*>(c);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (size_t i = 0; i < n; i++) {
    result[i] = right[i] < left[i] ? right[i] : left[i];
  }
}

// a[i] = a[i] op b[i] for 0 <= i < n.
template <typename T>
void sum(T* a, const T* b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    a[i] = a[i] + b[i];
  }
}

template <typename T>
void product(T* a, const T* b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    a[i] = a[i] * b[i];
  }
}

template <typename T>
void max(T* a, const T* b, size_t n) {
  max<T>(static_cast<void*>(a), a, b, n);
}

template <typename T>
void min(T* a, const T* b, size_t n) {
  min<T>(static_cast<void*>(a), a, b, n);
}

#define GLOO_DECLARE_REDUCTION(T, operation)                                   \
  template <>                                                                  \
  GLOO_API void operation<T>(void* c, const void* a, const void* b, size_t n); \
  template <>                                                                  \
  GLOO_API void operation<T>(T * a, const T* b, size_t n);
#define GLOO_DECLARE_REDUCTIONS(T)   \
  GLOO_DECLARE_REDUCTION(T, sum)     \
  GLOO_DECLARE_REDUCTION(T, product) \
  GLOO_DECLARE_REDUCTION(T, max)     \
  GLOO_DECLARE_REDUCTION(T, min)

GLOO_DECLARE_REDUCTIONS(char)
GLOO_DECLARE_REDUCTIONS(signed char)
GLOO_DECLARE_REDUCTIONS(unsigned char)
GLOO_DECLARE_REDUCTIONS(short)
GLOO_DECLARE_REDUCTIONS(unsigned short)
GLOO_DECLARE_REDUCTIONS(int)
GLOO_DECLARE_REDUCTIONS(unsigned int)
GLOO_DECLARE_REDUCTIONS(long)
GLOO_DECLARE_REDUCTIONS(unsigned long)
GLOO_DECLARE_REDUCTIONS(long long)
GLOO_DECLARE_REDUCTIONS(unsigned long long)
GLOO_DECLARE_REDUCTIONS(float)
GLOO_DECLARE_REDUCTIONS(double)
GLOO_DECLARE_REDUCTIONS(float16)
GLOO_DECLARE_REDUCTIONS(bfloat16)
GLOO_DECLARE_REDUCTION(std::complex<float>, sum)
GLOO_DECLARE_REDUCTION(std::complex<float>, product)
GLOO_DECLARE_REDUCTION(std::complex<double>, sum)
GLOO_DECLARE_REDUCTION(std::complex<double>, product)

#undef GLOO_DECLARE_REDUCTIONS
#undef GLOO_DECLARE_REDUCTION

namespace internal {
template <typename T>
constexpr AverageOf averageOf() {
  constexpr ElementType kType = elementTypeOf<T>();
  static_assert(kType >= ElementType::kFloat16,
                "averages are of float, double, float16, bfloat16 and complex");
  return {kType};
}
}  // namespace internal

// For setReduceFunction of a collective: the sum, divided by the number of
// contributions (ranks times vectors of each).
template <typename T>
inline constexpr internal::AverageOf average = internal::averageOf<T>();

// The smallest multiple of `multiple` (at least 1) that is not below `value`.
template <typename T, typename M>
constexpr T roundUp(T value, M multiple) {
  return static_cast<T>((value + multiple - 1) / multiple * multiple);
}

// The smallest e with 2^e >= value; 0 for 0.
template <typename T>
constexpr int log2ceil(T value) {
  int exponent = 0;
  for (uint64_t rest = value > 1 ? static_cast<uint64_t>(value) - 1 : 0;
       rest > 0; rest >>= 1) {
    exponent++;
  }
  return exponent;
}

GLOO_NAMESPACE_END
