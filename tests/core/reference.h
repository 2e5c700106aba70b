// The kernels' contract, one element at a time and by other means: 16-bit
// formats by exact arithmetic in double, bit patterns by cases.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gloo/internal/kernels.h"

namespace gloo::testing {

// A binary format of 16 bits.
struct Format {
  int exponentBits;
  int mantissaBits;
};
inline constexpr Format kFloat16Format{5, 10};
inline constexpr Format kBfloat16Format{8, 7};

// The number that the bits stand for; NaN for every NaN.
double valueOf(Format format, uint16_t bits);

// To nearest even; the positive quiet NaN for NaN.
uint16_t bitsFor(Format format, double value);

// What kernelFor(type, reduction) must compute for one element.
void reduceOne(internal::ElementType type, internal::Reduction reduction,
               void* c, const void* a, const void* b);

}  // namespace gloo::testing
