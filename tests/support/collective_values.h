// What ranks put into the collectives that tests call, and what must come out:
// both follow from rank and element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  explicit Foreign(int v) {
    for (size_t i = 0; i < kBytes; i++) {
      bytes[i] = uint8_t((i + 1) * size_t(v));
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

// Small integers, so that every type holds the sums of 16 ranks exactly.
template <typename T>
T valueOf(const Call& call, int rank, size_t i) {
  return T(static_cast<int>((i * 5 + i / 7 + call.seed) % 5 +
                            static_cast<size_t>(rank) % 3));
}

// What the call's reduction makes of an element.
template <typename T>
T reducedOf(const Call& call, int size, size_t i) {
  using internal::Reduction;
  T all = valueOf<T>(call, 0, i);
  for (int rank = 1; rank < size; rank++) {
    const T next = valueOf<T>(call, rank, i);
    if constexpr (std::is_arithmetic_v<T>) {
      if (call.reduction == Reduction::kProduct) {
        all = T(all * next);
        continue;
      }
      if (call.reduction == Reduction::kMin) {
        all = std::min(all, next);
        continue;
      }
      if (call.reduction == Reduction::kMax) {
        all = std::max(all, next);
        continue;
      }
    }
    all = T(all + next);
  }
  if constexpr (std::is_floating_point_v<T>) {
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

}  // namespace testing_support
GLOO_NAMESPACE_END
