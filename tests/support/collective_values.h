// What ranks put into the collectives that tests call, and what must come out:
// both follow from rank and element.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "gloo/common/string.h"
#include "gloo/config.h"
#include "gloo/internal/kernels.h"
#include "tests/support/vectors.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

// One call; the same on all ranks.
struct Call {
  size_t count = 1;  // elements: of the vector, or of a rank's part
  int root = 0;      // modulo the number of ranks
  bool inPlace = false;
  uint32_t tag = 0;
  unsigned seed = 0;
  bool even = false;  // v-collectives: `count` for every rank
  // Of numbers; others than these are summed.
  internal::Reduction reduction = internal::Reduction::kSum;
  const char* algorithm = nullptr;  // by name; null: the library chooses
  // Of an average by allreduce, not in place: so often the same input.
  size_t vectors = 1;
  size_t segment = 100000;  // at most, in bytes, where there is a reduction
};

// An element type that the library knows nothing about.
template <size_t kBytes, size_t kAlign = 1>
struct alignas(kAlign) Foreign {
  uint8_t bytes[kBytes];
  Foreign() = default;
  explicit Foreign(uint64_t v) {
    for (size_t i = 0; i < kBytes; i++) {
      bytes[i] = uint8_t((v >> i % 8 * 8) + i);
    }
  }
  Foreign operator+(const Foreign& other) const {
    Foreign sum;
    for (size_t i = 0; i < kBytes; i++) {
      sum.bytes[i] = uint8_t(bytes[i] + other.bytes[i]);
    }
    return sum;
  }
  bool operator==(const Foreign& other) const {
    return std::equal(bytes, bytes + kBytes, other.bytes);
  }
};
using Triple = Foreign<3>;

using internal::ElementType;
using internal::Reduction;

template <typename T>
constexpr ElementType kTypeOf = internal::elementTypeOf<T>();
template <typename T>
constexpr bool kIsNumber = kTypeOf<T> != ElementType::kUnknown;
template <typename T>
constexpr bool kIsComplex = internal::isComplex(kTypeOf<T>);
template <typename T>
constexpr bool kHasAverage = kTypeOf<T> >= ElementType::kFloat16;
template <typename T>
constexpr bool kIsHalf = kHasAverage<T> && sizeof(T) == 2;

// Other bits for every rank, index and seed, so that no block, rank or call can
// stand for another.
inline uint64_t bitsOf(const Call& call, int rank, size_t i) {
  uint64_t bits = (uint64_t{call.seed} << 32 | uint32_t(rank)) *
                      uint64_t{0x9e3779b97f4a7c15} ^
                  i * uint64_t{0xd6e8feb86659fd93};
  bits = (bits ^ bits >> 32) * uint64_t{0xd6e8feb86659fd93};
  bits = (bits ^ bits >> 29) * uint64_t{0x94d049bb133111eb};
  return bits ^ bits >> 32;
}

// Whatever fits into the type. Of floating point, what is finite.
template <typename T>
T valueOf(uint64_t bits) {
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return T(valueOf<Part>(bits), valueOf<Part>(bits * 5));
  } else if constexpr (kHasAverage<T>) {
    bits &= ~(uint64_t{1} << (8 * sizeof(T) - 2));
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
    return value;
  } else {
    return T(bits);
  }
}

template <typename T>
T valueOf(const Call& call, int rank, size_t i) {
  return valueOf<T>(bitsOf(call, rank, i));
}

// An integer whose sums of 16 ranks (of 256, where the type has 32 bits) the
// type holds exactly, in whatever order.
template <typename T>
T termOf(uint64_t bits) {
  constexpr int kBits = kTypeOf<T> == ElementType::kBfloat16 ? 5
                        : kIsHalf<T>                         ? 8
                        : sizeof(T) == 4                     ? 16
                                                             : 40;
  // Without the least, which is one more than the greatest.
  constexpr int64_t kMost = (int64_t{1} << (kBits - 1)) - 1;
  return T(static_cast<int64_t>(bits >> 24) % (2 * kMost + 1) - kMost);
}

// A power of two, up or down, of either sign: neither their products round, nor
// do those of 16 ranks leave the type.
template <typename T>
T factorOf(uint64_t bits) {
  constexpr uint64_t kMost = kTypeOf<T> == ElementType::kFloat16 ? 1 : 7;
  const uint64_t exponent = (bits >> 8) % (2 * kMost + 1);
  const double power = static_cast<double>(uint64_t{1} << exponent) /
                       static_cast<double>(uint64_t{1} << kMost);
  return T(bits % 2 == 0 ? power : -power);
}

// What a rank brings to the call's reduction: the result is exact. Integers
// wrap around, and odd ones are never lost in a product.
template <typename T>
T operandOf(const Call& call, int rank, size_t i) {
  const uint64_t bits = bitsOf(call, rank, i);
  const bool multiplies = call.reduction == Reduction::kProduct;
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    if (multiplies) {
      const auto factor = factorOf<Part>(bits);
      return bits >> 32 & 1 ? T(0, factor) : T(factor, 0);
    }
    return T(termOf<Part>(bits), termOf<Part>(bits * 5));
  } else if constexpr (kHasAverage<T>) {
    return multiplies ? factorOf<T>(bits) : termOf<T>(bits);
  } else {
    return T(multiplies ? bits | 1 : bits);
  }
}

// What the call's reduction makes of two operands, as it does for the caller's
// types: those that know only a sum are summed.
template <typename T>
T reduceTwo(const Call& call, T a, T b) {
  constexpr bool kIsInteger = kIsNumber<T> && !kHasAverage<T>;
  if constexpr (kIsNumber<T> && !kIsComplex<T>) {
    if (call.reduction == Reduction::kMin) {
      return b < a ? b : a;
    }
    if (call.reduction == Reduction::kMax) {
      return a < b ? b : a;
    }
  }
  if constexpr (kIsNumber<T>) {
    if (call.reduction == Reduction::kProduct) {
      if constexpr (kIsInteger) {
        return T(uint64_t(a) * uint64_t(b));
      } else {
        return T(a * b);
      }
    }
  }
  if constexpr (kIsInteger) {
    return T(uint64_t(a) + uint64_t(b));
  } else {
    return T(a + b);
  }
}

template <typename T>
T reducedOf(const Call& call, int size, size_t i) {
  T all = operandOf<T>(call, 0, i);
  for (int rank = 1; rank < size; rank++) {
    all = reduceTwo(call, all, operandOf<T>(call, rank, i));
  }
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return call.reduction == Reduction::kAverage ? all / Part(size) : all;
  } else if constexpr (kHasAverage<T>) {
    return call.reduction == Reduction::kAverage ? all / T(size) : all;
  }
  return all;
}

template <typename T>
Vector<T> inputOf(const Call& call, int rank, size_t n, size_t begin = 0) {
  Vector<T> values;
  values.reserve(n);
  for (size_t i = 0; i < n; i++) {
    values.push_back(valueOf<T>(call, rank, begin + i));
  }
  return values;
}

template <typename T>
Vector<T> operandsOf(const Call& call, int rank, size_t n) {
  Vector<T> values;
  values.reserve(n);
  for (size_t i = 0; i < n; i++) {
    values.push_back(operandOf<T>(call, rank, i));
  }
  return values;
}

// Of rank `rank` in a v-collective: some are zero.
inline size_t countOf(const Call& call, int rank) {
  if (call.even) {
    return call.count;
  }
  const size_t turn = (static_cast<size_t>(rank) + call.seed) % 4;
  return turn == 1 ? 0 : call.count * (turn + 1) / 2;
}
// From one rank to another. In place, as much in the other direction.
inline size_t countOf(const Call& call, int from, int to) {
  const int a = call.inPlace ? std::min(from, to) : from;
  const int b = call.inPlace ? std::max(from, to) : to;
  return countOf(call, a + 3 * b);
}

inline std::vector<size_t> countsOf(const Call& call, int size) {
  std::vector<size_t> counts;
  for (int rank = 0; rank < size; rank++) {
    counts.push_back(countOf(call, rank));
  }
  return counts;
}

inline size_t totalOf(const std::vector<size_t>& counts, int ranks) {
  size_t total = 0;
  for (int rank = 0; rank < ranks; rank++) {
    total += counts[static_cast<size_t>(rank)];
  }
  return total;
}

// Empty, or where the results differ from expected(i).
template <typename T, typename Expected>
std::string differs(const char* name, const Vector<T>& is, size_t n,
                    const Expected& expected) {
  for (size_t i = 0; i < n; i++) {
    if (!(is[i] == expected(i))) {
      return MakeString(name, ": element ", i, " of ", n, " is wrong");
    }
  }
  return {};
}

// Of an input, beside what the library is given.
template <typename T>
std::vector<T> copyOf(const Vector<T>& vector) {
  return {vector.begin(), vector.end()};
}

// Whether a call has written to what was only its input: empty, or where.
template <typename T>
std::string touched(const char* name, const std::vector<T>& before,
                    const Vector<T>& after) {
  for (size_t i = 0; i < before.size(); i++) {
    if (std::memcmp(&before[i], &after[i], sizeof(T)) != 0) {
      return MakeString(name, ": element ", i, " of the input has changed");
    }
  }
  return {};
}

inline std::string either(std::string one, std::string other) {
  return one.empty() ? other : one;
}

}  // namespace testing_support
GLOO_NAMESPACE_END
