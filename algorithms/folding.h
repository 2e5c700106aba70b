// Algorithms for powers of two, made to work for every size.
#pragma once

#include "algorithms/schedule.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Of the first 2 * extra ranks one of each pair of neighbours hands its vector
// to the other and sits out; the others are the members. Neighbours, so that
// contributions stay in order.
struct Folding {
  // The odd rank of a pair sits out, but never rank `stays`.
  explicit Folding(const Setting& s, int stays = -1)
      : power(floorPowerOfTwo(s.size)),
        extra(s.size - power),
        levels(ceilLog2(power)),
        stays(stays),
        folds(s.rank < 2 * extra),
        index(folds ? s.rank / 2 : s.rank - extra),
        member(s.rank == rankOf(index)) {}

  int rankOf(int i) const {
    return i < extra ? 2 * i + (stays == 2 * i + 1 ? 1 : 0) : i + extra;
  }

  const int power;
  const int extra;
  const int levels;
  const int stays;
  const bool folds;   // this rank belongs to a pair
  const int index;    // among the members; the same for both of a pair
  const bool member;  // does not sit out
};

// The lowest of first, first + 1, ... (cyclic).
constexpr int lowestOf(int first, int count, int size) {
  return first + count > size ? 0 : first;
}

// Blocks that member `index` still works on after `levels` halvings: the k-th
// keeps the lower half where bit k of the index is 0.
constexpr Blocks halved(Area area, int power, int index, int levels) {
  int first = 0;
  for (int k = 0; k < levels; k++) {
    first += ((index >> k) & 1) * (power >> (k + 1));
  }
  return {area, first, power >> levels};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
