// Inputs of reductions whose results show the order of the operands, of every
// element type.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "gloo/internal/kernels.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

// Of any magnitude; NaN and infinities of either sign, and zeros.
inline float bitValue(std::mt19937& random) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float mantissa = static_cast<float>(random() % 100003) / 7919.0f;
  const float value =
      std::ldexp(mantissa, static_cast<int>(random() % 30) - 15);
  const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
  switch (random() % 12) {
    case 0:
      return std::copysign(kNan, sign);
    case 1:
      return sign * kInfinity;
    case 2:
    case 3:
      return sign * 0.0f;
    default:
      return sign * value;
  }
}

template <typename T>
T bitElement(std::mt19937& random, bool isZero, bool isNegative) {
  const float value = isZero ? (isNegative ? -0.0f : 0.0f) : bitValue(random);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return T(value, isZero ? value : bitValue(random));
  } else if constexpr (std::is_same_v<T, double>) {
    // With bits that a float does not have.
    return static_cast<double>(value) * (1 + std::ldexp(1.0, -40));
  } else {
    return T(value);
  }
}

// In every fifth element all ranks have zeros, so that signs show.
template <typename T>
std::vector<T> bitValues(int rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 17);
  std::vector<T> values;
  for (size_t i = 0; i < count; i++) {
    values.push_back(bitElement<T>(random, i % 5 == 0,
                                   (static_cast<size_t>(rank) + i) % 3 != 0));
  }
  return values;
}

template <typename T>
std::vector<char> bitBytes(int rank, size_t count) {
  const std::vector<T> values = bitValues<T>(rank, count);
  std::vector<char> bytes(count * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace testing_support
GLOO_NAMESPACE_END
