// The binomial tree on ranks relative to the root: the parent of v is v without
// its lowest set bit.
#pragma once

#include "algorithms/schedule.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

struct Tree {
  explicit Tree(const Setting& s)
      : size(s.size),
        root(s.root),
        levels(ceilLog2(s.size)),
        v(wrap(s.rank - s.root, s.size)) {}

  int rankOf(int relative) const { return wrap(relative + root, size); }
  int parent() const { return v & (v - 1); }
  // Only for bits below the lowest set one of v.
  bool hasChild(int bit) const {
    return (v == 0 || bit < (v & -v)) && v + bit < size;
  }
  // Ranks u, u + 1, ... below and including u.
  int subtree(int u) const {
    const int all = u == 0 ? size : u & -u;
    return all < size - u ? all : size - u;
  }

  const int size;
  const int root;
  const int levels;
  const int v;  // this rank
};

}  // namespace algorithms
GLOO_NAMESPACE_END
