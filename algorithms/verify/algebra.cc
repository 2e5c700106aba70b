#include "algorithms/verify/algebra.h"

#include <algorithm>

#include "gloo/common/string.h"
#include "gloo/internal/hash.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

// Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014: a step of SplitMix64.
uint64_t mix(uint64_t x) { return internal::mixed(x + 0x9e3779b97f4a7c15); }

uint64_t hashOf(int rank, size_t index) {
  return mix(mix(static_cast<uint64_t>(rank) + 1) + index);
}

// Of a reduction, whose operands have these.
uint64_t treeOf(uint64_t left, uint64_t right) {
  return mix(mix(left) + 3 * right);
}

}  // namespace

Algebra::Algebra(int ranks, bool idempotent)
    : ranks_(ranks), idempotent_(idempotent), nodes_(1), sets_(1) {}

Value Algebra::add(const Node& node) {
  nodes_.push_back(node);
  return static_cast<Value>(nodes_.size() - 1);
}

Value Algebra::input(int rank, size_t index) {
  const uint64_t hash = hashOf(rank, index);
  if (idempotent_) {
    sets_.emplace_back(static_cast<size_t>(ranks_), false);
    sets_.back()[static_cast<size_t>(rank)] = true;
  }
  return add({hash, hash, 1, rank});
}

Value Algebra::unite(Value left, Value right) {
  std::vector<bool> set = sets_[left];
  for (size_t i = 0; i < set.size(); i++) {
    set[i] = set[i] || sets_[right][i];
  }
  sets_.push_back(std::move(set));
  return add({mix(nodes_[left].tree + nodes_[right].tree), 0, 0,
              std::min(nodes_[left].lowest, nodes_[right].lowest)});
}

Value Algebra::reduce(Value left, Value right, std::string* error) {
  if (left == kUndefined || right == kUndefined) {
    *error = "reduces an undefined value";
    return kUndefined;
  }
  if (idempotent_) {
    return unite(left, right);
  }
  const Node a = nodes_[left];
  const Node b = nodes_[right];
  if (a.lowest >= b.lowest) {
    *error = MakeString("left operand ", describe(left),
                        " does not hold the lowest contribution; right is ",
                        describe(right));
    return kUndefined;
  }
  return add(
      {treeOf(a.tree, b.tree), a.sum + b.sum, a.count + b.count, a.lowest});
}

bool Algebra::same(Value a, Value b) const {
  return idempotent_ ? sets_[a] == sets_[b] : nodes_[a].tree == nodes_[b].tree;
}

bool Algebra::isInput(Value value, int rank, size_t index) const {
  const Node& node = nodes_[value];
  return node.count == 1 && node.tree == hashOf(rank, index);
}

bool Algebra::isReductionOfAll(Value value, size_t index) const {
  if (value == kUndefined) {
    return false;
  }
  if (idempotent_) {
    return std::find(sets_[value].begin(), sets_[value].end(), false) ==
           sets_[value].end();
  }
  uint64_t sum = 0;
  for (int rank = 0; rank < ranks_; rank++) {
    sum += hashOf(rank, index);
  }
  return nodes_[value].count == ranks_ && nodes_[value].sum == sum;
}

bool Algebra::isChainOfAll(Value value, size_t index) const {
  uint64_t tree = hashOf(0, index);
  for (int rank = 1; rank < ranks_; rank++) {
    tree = treeOf(tree, hashOf(rank, index));
  }
  return nodes_[value].tree == tree;
}

std::string Algebra::describe(Value value) const {
  if (value == kUndefined) {
    return "undefined";
  }
  return MakeString("value of ", nodes_[value].count,
                    " contributions, lowest from rank ", nodes_[value].lowest);
}

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
