// The plan of a soak: which operation a step is, on how many elements, and what
// each rank brings to it. All ranks derive the same one from the seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "gloo/common/string.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// GLOO_SOAK_<name>: how many elements at most, operations, ranks.
inline int setting(const char* name, int otherwise) {
  const char* text = std::getenv(MakeString("GLOO_SOAK_", name).c_str());
  return text != nullptr ? std::atoi(text) : otherwise;
}

// What rank r contributes at element i of operation `op`.
inline uint64_t input(uint64_t op, int rank, uint64_t i) {
  return (op * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) * 1000003u +
          i * 0xff51afd7ed558ccdu) ^
         (i >> 3);
}

// The same on all ranks: one step of the plan.
struct Step {
  uint64_t number;
  uint64_t random;
  size_t elements;

  Step(uint64_t number, std::mt19937_64& generator)
      : number(number), random(generator()) {
    const uint64_t size = generator();
    // mostly short, sometimes around the limits of segments
    elements = random % 11 == 0  ? size % 700000
               : random % 3 == 0 ? size % 20000
                                 : size % 100;
    static const auto most = static_cast<size_t>(setting("MOST", 700000));
    elements = elements <= most ? elements : elements % (most + 1);
  }
  int root(int size) const {
    return static_cast<int>((random >> 20) % static_cast<uint64_t>(size));
  }
};

inline std::vector<uint64_t> inputs(const Step& step, int rank) {
  std::vector<uint64_t> values(step.elements);
  for (size_t i = 0; i < values.size(); i++) {
    values[i] = input(step.number, rank, i);
  }
  return values;
}

template <typename Expected>
void check(const Step& step, const std::vector<uint64_t>& got,
           const Expected& expected) {
  for (size_t i = 0; i < got.size(); i++) {
    ASSERT_EQ(got[i], expected(i))
        << "operation " << step.number << " at " << i << " of " << got.size();
  }
}

}  // namespace test
GLOO_NAMESPACE_END
