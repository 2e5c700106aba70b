// Inputs that follow from (rank, input, element, iteration), and the check of
// results against what must come out of them. Values are small integers, so
// that every element type holds the sums exactly.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>

#include "gloo/types.h"

namespace benchmark {

// How many different values each coordinate gives: few where the type cannot
// hold large sums. All integers to kExact are of the type.
template <typename T>
struct Moduli {
  static constexpr size_t kElement = 101, kRank = 31, kIteration = 97;
  static constexpr size_t kExact = size_t{1} << 24;
};
template <>
struct Moduli<gloo::float16> {
  static constexpr size_t kElement = 5, kRank = 3, kIteration = 3;
  static constexpr size_t kExact = size_t{1} << 11;
};

// So many inputs have a sum that the type holds, whatever their values.
template <typename T>
constexpr int64_t mostSummed() {
  using M = Moduli<T>;
  constexpr size_t kLargest =
      M::kElement - 1 + M::kRank - 1 + M::kIteration - 1;
  return int64_t(M::kExact / kLargest);
}

// Elements after which the values repeat: vectors are written and compared in
// blocks of this many. A prime: what lies a power of two from its place, as a
// segment that was mixed up with another does, must not look right.
constexpr size_t kBlock = 1021;

template <typename T>
T makeValue(double value) {
  return T(value);
}

// Element values of one input vector of one rank in one iteration.
template <typename T>
double inputValue(int rank, int input, size_t element, size_t iteration) {
  using M = Moduli<T>;
  return double(element % kBlock % M::kElement +
                (size_t(rank) * 7 + size_t(input)) % M::kRank +
                iteration % M::kIteration);
}

template <typename T>
void fillInput(std::span<T> data, int rank, int input, size_t iteration) {
  std::array<T, kBlock> block;
  const size_t n = std::min(kBlock, data.size());
  for (size_t i = 0; i < n; i++) {
    block[i] = makeValue<T>(inputValue<T>(rank, input, i, iteration));
  }
  for (size_t i = 0; i < data.size(); i += kBlock) {
    std::copy_n(block.begin(), std::min(kBlock, data.size() - i),
                data.begin() + std::ptrdiff_t(i));
  }
}

// The results of one iteration on one rank. Collects what is wrong.
template <typename T>
class Checker {
 public:
  Checker(int size, int inputs, size_t iteration, bool all)
      : size_(size), inputs_(inputs), iteration_(iteration), all_(all) {}

  // data[i] = element `offset` + i of an input of a rank.
  void isInput(std::span<const T> data, int rank, int input,
               size_t offset = 0) {
    compare(data, offset, [&](size_t element) {
      return inputValue<T>(rank, input, element, iteration_);
    });
  }

  // data[i] = sum over all ranks (or one rank) and inputs of that element.
  void isSum(std::span<const T> data, size_t offset = 0) {
    compare(data, offset, [&](size_t element) {
      double sum = 0;
      for (int rank = 0; rank < size_; rank++) {
        sum += sumOfRank(rank, element);
      }
      return sum;
    });
  }
  void isLocalSum(std::span<const T> data, int rank) {
    compare(data, 0, [&](size_t e) { return sumOfRank(rank, e); });
  }

  // Any other condition.
  void isTrue(bool condition, const std::string& text) {
    if (!condition) {
      add(text);
    }
  }

  // Empty: all is right.
  const std::string& errors() const { return errors_; }

 private:
  double sumOfRank(int rank, size_t element) const {
    double sum = 0;
    for (int input = 0; input < inputs_; input++) {
      sum += inputValue<T>(rank, input, element, iteration_);
    }
    return sum;
  }

  template <typename Expected>
  void compare(std::span<const T> data, size_t offset, Expected expected) {
    std::array<T, kBlock> block;
    const size_t n = std::min(kBlock, data.size());
    for (size_t i = 0; i < n; i++) {
      block[i] = makeValue<T>(expected(offset + i));
    }
    for (size_t i = 0; i < data.size() && wanted(); i += kBlock) {
      const size_t length = std::min(kBlock, data.size() - i);
      for (size_t j = 0; j < length && wanted(); j++) {
        if (data[i + j] != block[j]) {
          describe(i + j, data[i + j], block[j]);
        }
      }
    }
  }

  bool wanted() const { return all_ || errors_.empty(); }

  void describe(size_t element, const T& is, const T& want) {
    std::ostringstream out;
    out << "element " << element << " is " << double(asFloat(is)) << ", not "
        << double(asFloat(want));
    add(out.str());
  }

  void add(const std::string& text) {
    if (wanted()) {
      errors_ += errors_.empty() ? text : "\n" + text;
    }
  }

  static float asFloat(float value) { return value; }
  static float asFloat(gloo::float16 value) {
    return gloo::cpu_half2float(value);
  }

  int size_;
  int inputs_;
  size_t iteration_;
  bool all_;
  std::string errors_;
};

}  // namespace benchmark
