#include "tests/core/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace gloo::testing {
namespace {

using internal::ElementType;
using internal::Reduction;

int bias(Format format) { return (1 << (format.exponentBits - 1)) - 1; }

template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
void store(void* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

// Minimum or maximum of numbers: NaN wins, and -0 is below +0.
template <typename T>
T extreme(Reduction reduction, T a, T b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  const bool less = a < b || (a == b && std::signbit(a));
  return less == (reduction == Reduction::kMin) ? a : b;
}

template <typename T>
T real(Reduction reduction, T a, T b) {
  const T result = reduction == Reduction::kSum ? a + b
                   : reduction == Reduction::kProduct
                       ? a * b
                       : extreme(reduction, a, b);
  return std::isnan(result) ? std::numeric_limits<T>::quiet_NaN() : result;
}

template <typename T>
T integer(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::kSum:
      return static_cast<T>(uint64_t(a) + uint64_t(b));
    case Reduction::kProduct:
      return static_cast<T>(uint64_t(a) * uint64_t(b));
    case Reduction::kMin:
      return a < b ? a : b;
    default:
      return a < b ? b : a;
  }
}

template <typename T>
void reduceAs(Reduction reduction, void* c, const void* a, const void* b) {
  if constexpr (std::is_integral_v<T>) {
    store(c, integer(reduction, load<T>(a), load<T>(b)));
  } else {
    store(c, real(reduction, load<T>(a), load<T>(b)));
  }
}

template <typename T>
void reduceComplex(Reduction reduction, void* c, const void* a, const void* b) {
  struct Pair {
    T real, imaginary;
  };
  const auto x = load<Pair>(a);
  const auto y = load<Pair>(b);
  volatile T results[2];  // volatile: nothing is fused or reordered
  if (reduction == Reduction::kSum) {
    results[0] = x.real + y.real;
    results[1] = x.imaginary + y.imaginary;
  } else {
    volatile T products[4] = {x.real * y.real, x.imaginary * y.imaginary,
                              x.real * y.imaginary, x.imaginary * y.real};
    results[0] = products[0] - products[1];
    results[1] = products[2] + products[3];
  }
  const T nan = std::numeric_limits<T>::quiet_NaN();
  store(c, Pair{std::isnan(results[0]) ? nan : results[0],
                std::isnan(results[1]) ? nan : results[1]});
}

void reduceHalf(Format format, Reduction reduction, void* c, const void* a,
                const void* b) {
  const auto x = static_cast<float>(valueOf(format, load<uint16_t>(a)));
  const auto y = static_cast<float>(valueOf(format, load<uint16_t>(b)));
  store(c, bitsFor(format, real(reduction, x, y)));
}

}  // namespace

double valueOf(Format format, uint16_t bits) {
  const int exponentMask = (1 << format.exponentBits) - 1;
  const int exponent = (bits >> format.mantissaBits) & exponentMask;
  const int mantissa = bits & ((1 << format.mantissaBits) - 1);
  double magnitude;
  if (exponent == exponentMask) {
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else {
    const int implicitBit = exponent == 0 ? 0 : 1 << format.mantissaBits;
    const int scale = (exponent == 0 ? 1 : exponent) - bias(format);
    magnitude = std::ldexp(implicitBit + mantissa, scale - format.mantissaBits);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

uint16_t bitsFor(Format format, double value) {
  const int infinity = ((1 << format.exponentBits) - 1) << format.mantissaBits;
  if (std::isnan(value)) {
    return static_cast<uint16_t>(infinity | (1 << (format.mantissaBits - 1)));
  }
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isinf(value)) {
    return static_cast<uint16_t>(sign | infinity);
  }
  int exponent = 0;
  std::frexp(value, &exponent);  // value = 0.1... * 2^exponent
  const int smallest = 1 - bias(format);
  const int scale = value == 0 ? smallest : std::max(exponent - 1, smallest);
  // In units of the last place; nearbyint rounds to even by default. A
  // mantissa that rounds up to the next power of two carries by itself.
  const double units =
      std::nearbyint(std::ldexp(std::fabs(value), format.mantissaBits - scale));
  const int biased = scale + bias(format);
  const double bits =
      units + std::ldexp(double(biased) - 1, format.mantissaBits);
  return static_cast<uint16_t>(
      sign | (bits >= infinity ? infinity : static_cast<int>(bits)));
}

void reduceOne(ElementType type, Reduction reduction, void* c, const void* a,
               const void* b) {
  switch (type) {
    case ElementType::kInt8:
      return reduceAs<int8_t>(reduction, c, a, b);
    case ElementType::kUint8:
      return reduceAs<uint8_t>(reduction, c, a, b);
    case ElementType::kInt16:
      return reduceAs<int16_t>(reduction, c, a, b);
    case ElementType::kUint16:
      return reduceAs<uint16_t>(reduction, c, a, b);
    case ElementType::kInt32:
      return reduceAs<int32_t>(reduction, c, a, b);
    case ElementType::kUint32:
      return reduceAs<uint32_t>(reduction, c, a, b);
    case ElementType::kInt64:
      return reduceAs<int64_t>(reduction, c, a, b);
    case ElementType::kUint64:
      return reduceAs<uint64_t>(reduction, c, a, b);
    case ElementType::kFloat16:
      return reduceHalf(kFloat16Format, reduction, c, a, b);
    case ElementType::kBfloat16:
      return reduceHalf(kBfloat16Format, reduction, c, a, b);
    case ElementType::kFloat32:
      return reduceAs<float>(reduction, c, a, b);
    case ElementType::kFloat64:
      return reduceAs<double>(reduction, c, a, b);
    case ElementType::kComplex64:
      return reduceComplex<float>(reduction, c, a, b);
    case ElementType::kComplex128:
      return reduceComplex<double>(reduction, c, a, b);
    case ElementType::kUnknown:
      return;
  }
}

}  // namespace gloo::testing
