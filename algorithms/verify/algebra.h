// Symbolic vector elements: how a value was made from the ranks' inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {

// 0 is the undefined value. Equal values have the same tree of reductions, so
// that they stand for equal bits: compare with Algebra::same().
using Value = uint32_t;
constexpr Value kUndefined = 0;

// Makes and compares values. Trees and sets of contributions are represented
// by 64-bit hashes: what differs is taken for equal with probability 2^-64.
class Algebra {
 public:
  // idempotent: values are sets of ranks, and a reduction is their union.
  Algebra(int ranks, bool idempotent);

  // Element `index` of the input of `rank`.
  Value input(int rank, size_t index);

  // left (op) right. Sets *error if an operand is undefined, if they have a
  // contribution in common that shows at their lowest ranks, or if the left one
  // does not hold the lowest rank.
  Value reduce(Value left, Value right, std::string* error);

  bool same(Value a, Value b) const;

  // Whether it is element `index` of the input of `rank`; not idempotent.
  bool isInput(Value value, int rank, size_t index) const;

  // Whether it is element `index` of every rank's input, each exactly once.
  bool isReductionOfAll(Value value, size_t index) const;

  // Whether it is that, made along the chain of the ranks, ((0 + 1) + 2) + ...;
  // not idempotent.
  bool isChainOfAll(Value value, size_t index) const;

  std::string describe(Value value) const;

 private:
  struct Node {
    uint64_t tree = 0;
    uint64_t sum = 0;  // of the contributions' hashes
    int count = 0;     // of contributions
    int lowest = 0;    // contributing rank
  };
  Value add(const Node& node);
  Value unite(Value left, Value right);

  int ranks_;
  bool idempotent_;
  std::vector<Node> nodes_;
  std::vector<std::vector<bool>> sets_;  // beside nodes_, where idempotent
};

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
