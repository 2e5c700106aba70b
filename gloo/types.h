// Slots, by which messages of different operations are told apart, and the
// 16-bit floating-point types.
#pragma once

#include <cstdint>
#include <cstring>
#include <ostream>
#include <type_traits>

#include "gloo/common/common.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

// The most significant byte of a slot: one for each kind of operation. Callers
// with protocols of their own use others, for example 0x40.
constexpr uint8_t kGatherSlotPrefix = 0x01;
constexpr uint8_t kAllgatherSlotPrefix = 0x02;
constexpr uint8_t kReduceSlotPrefix = 0x03;
constexpr uint8_t kAllreduceSlotPrefix = 0x04;
constexpr uint8_t kScatterSlotPrefix = 0x05;
constexpr uint8_t kBroadcastSlotPrefix = 0x06;
constexpr uint8_t kBarrierSlotPrefix = 0x07;
constexpr uint8_t kAlltoallSlotPrefix = 0x08;
constexpr uint8_t kReduceScatterSlotPrefix = 0x09;

// prefix << 56 | tag << 24 | delta. Immutable value.
class Slot {
 public:
  static constexpr Slot build(uint8_t prefix, uint32_t tag) {
    return Slot((uint64_t{prefix} << 56) | (uint64_t{tag} << 24));
  }

  constexpr operator uint64_t() const { return value_; }

  // The slot `delta` further on: one operation may use up to 2^24. A template,
  // so that the delta's type never leaves a choice between this operator and
  // the one of integers.
  template <typename T>
  constexpr std::enable_if_t<std::is_integral<T>::value, Slot> operator+(
      T delta) const {
    return Slot(value_ + static_cast<uint64_t>(delta));
  }

 private:
  explicit constexpr Slot(uint64_t value) : value_(value) {}

  uint64_t value_;
};

namespace half_detail {

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The float that rounds to the same 16-bit value as `value` does: inexact
// results get an odd last bit, so that no tie arises which was none (Boldo and
// Melquiond, "When double rounding is odd", 2005).
inline float roundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = bitsOf(nearest);
  if (static_cast<double>(nearest) == value || value != value ||
      (bits & 1) != 0) {
    return nearest;
  }
  const bool below = value < 0 ? static_cast<double>(nearest) > value
                               : static_cast<double>(nearest) < value;
  return floatOf(below ? bits + 1 : bits - 1);
}

// Likewise of an integer that no double holds: more bits are left than a float
// has.
inline double roundToOddDouble(uint64_t magnitude) {
  constexpr uint64_t kBelow = (uint64_t{1} << 11) - 1;  // 64 - 53 bits
  if (magnitude >> 53 == 0 || (magnitude & kBelow) == 0) {
    return static_cast<double>(magnitude);
  }
  return static_cast<double>((magnitude | (kBelow + 1)) & ~kBelow);
}

template <typename T>
double doubleOf(T value) {
  if constexpr (std::is_integral<T>::value && sizeof(T) == sizeof(uint64_t)) {
    const auto bits = static_cast<uint64_t>(value);
    if constexpr (std::is_signed<T>::value) {
      if (value < 0) {
        return -roundToOddDouble(0 - bits);
      }
    }
    return roundToOddDouble(bits);
  } else {
    return static_cast<double>(value);
  }
}

GLOO_API uint16_t float16FromFloat(float value);
GLOO_API float floatFromFloat16(uint16_t bits);
GLOO_API uint16_t bfloat16FromFloat(float value);
inline float floatFromBfloat16(uint16_t bits) {
  return floatOf(uint32_t{bits} << 16);
}

// Operators of both types: computed as float, rounded once to nearest even.
// Comparisons are those of float: NaN equals nothing, -0 equals +0.
template <typename H>
struct Operators {
  friend H operator+(H a, H b) { return H(float(a) + float(b)); }
  friend H operator-(H a, H b) { return H(float(a) - float(b)); }
  friend H operator*(H a, H b) { return H(float(a) * float(b)); }
  friend H operator/(H a, H b) { return H(float(a) / float(b)); }
  friend H operator-(H a) { return H(-float(a)); }
  friend H& operator+=(H& a, H b) { return a = a + b; }
  friend H& operator-=(H& a, H b) { return a = a - b; }
  friend H& operator*=(H& a, H b) { return a = a * b; }
  friend H& operator/=(H& a, H b) { return a = a / b; }
  friend bool operator==(H a, H b) { return float(a) == float(b); }
  friend bool operator!=(H a, H b) { return float(a) != float(b); }
  friend bool operator<(H a, H b) { return float(a) < float(b); }
  friend bool operator>(H a, H b) { return float(a) > float(b); }
  friend bool operator<=(H a, H b) { return float(a) <= float(b); }
  friend bool operator>=(H a, H b) { return float(a) >= float(b); }
  // A number is rounded like any that becomes an H.
  template <typename T,
            typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  friend bool operator==(H a, T b) {
    return a == H(b);
  }
  template <typename T,
            typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  friend bool operator!=(H a, T b) {
    return a != H(b);
  }
  // As the float prints.
  friend std::ostream& operator<<(std::ostream& out, H value) {
    return out << float(value);
  }
};

}  // namespace half_detail

// IEEE 754 binary16: 1 sign, 5 exponent and 10 mantissa bits, in `x`. Numbers
// are rounded to nearest even.
struct float16 : half_detail::Operators<float16> {
  uint16_t x = 0;

  constexpr float16() = default;
  explicit float16(float value) : x(half_detail::float16FromFloat(value)) {}
  template <typename T,
            typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  explicit float16(T value)
      : float16(half_detail::roundToOdd(half_detail::doubleOf(value))) {}

  template <typename T>
  std::enable_if_t<std::is_arithmetic<T>::value, float16&> operator=(T value) {
    return *this = float16(value);
  }

  explicit operator float() const { return half_detail::floatFromFloat16(x); }
};

// The upper half of a float: 1 sign, 8 exponent and 7 mantissa bits, in `x`.
struct bfloat16 : half_detail::Operators<bfloat16> {
  uint16_t x = 0;

  constexpr bfloat16() = default;
  explicit bfloat16(float value) : x(half_detail::bfloat16FromFloat(value)) {}
  template <typename T,
            typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  explicit bfloat16(T value)
      : bfloat16(half_detail::roundToOdd(half_detail::doubleOf(value))) {}

  template <typename T>
  std::enable_if_t<std::is_arithmetic<T>::value, bfloat16&> operator=(T value) {
    return *this = bfloat16(value);
  }

  explicit operator float() const { return half_detail::floatFromBfloat16(x); }
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2,
              "arrays of them travel as they are");

inline float16 cpu_float2half_rn(float value) { return float16(value); }
inline float cpu_half2float(float16 value) { return float(value); }

GLOO_NAMESPACE_END
