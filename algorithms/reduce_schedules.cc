#include "algorithms/folding.h"
#include "algorithms/schedules.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Ranks relative to the root. After step k, a rank whose lowest k + 1 bits are
// zero holds the sum of the 2^(k + 1) ranks from itself on.
Step binomialStep(const Setting& s, int k) {
  const int v = wrap(s.rank - s.root, s.size);
  const int bit = 1 << k;
  const bool holdsSum = k > 0 && v + 1 < s.size;
  const Area sum = v == 0 ? Area::kOutput : Area::kScratch;
  const Blocks own{holdsSum ? sum : Area::kInput, 0, 1};
  if ((v & (bit - 1)) != 0) {
    return Step::idle(0);  // has handed over its sum
  }
  if ((v & bit) != 0) {
    return Step::send(0, wrap(v - bit + s.root, s.size), own);
  }
  if (v + bit >= s.size) {
    return Step::idle(0);
  }
  const int child = wrap(v + bit + s.root, s.size);
  const int childCount = bit < s.size - v - bit ? bit : s.size - v - bit;
  const bool ownFirst =
      lowestOf(s.rank, bit, s.size) < lowestOf(child, childCount, s.size);
  return Step::recvReduce(0, child, own, {sum, 0, 1}, ownFirst);
}

// Halves as the allreduce does; then the members whose lowest differing bit is
// the highest one hand their blocks towards the root first.
Step rabenseifnerStep(const Setting& s, int i) {
  const Folding f(s, s.root);
  const Area sum = s.rank == s.root ? Area::kOutput : Area::kScratch;
  if (i == 0) {
    const int peer = s.rank ^ 1;
    const Blocks in{Area::kInput, 0, f.power};
    return !f.folds ? Step::idle(0)
           : f.member
               ? Step::recvReduce(0, peer, in, {sum, 0, f.power}, s.rank < peer)
               : Step::send(0, peer, in);
  }
  const bool gathers = i > 2 * f.levels;
  const int level = gathers ? 3 * f.levels - i : (i - 1) / 2;
  const int round = gathers ? i - f.levels : level + 1;
  const int bit = 1 << level;
  const int peer = f.rankOf(f.index ^ bit);
  if (!f.member) {
    return Step::idle(round);
  }
  const Blocks own = halved(sum, f.power, f.index, level + 1);
  const Blocks other = halved(sum, f.power, f.index ^ bit, level + 1);
  if (!gathers) {
    const bool first = level == 0 && !f.folds;
    const Area area = first ? Area::kInput : sum;
    return i % 2 == 1
               ? Step::send(round, peer, {area, other.first, other.count})
               : Step::recvReduce(round, peer, {area, own.first, own.count},
                                  own, (f.index & bit) == 0);
  }
  const int differs = f.index ^ Folding({s.root, s.size}, s.root).index;
  if (differs >= 2 * bit) {
    return Step::idle(round);  // has handed over its blocks
  }
  return (differs & bit) != 0 ? Step::send(round, peer, own)
                              : Step::recv(round, peer, other);
}

}  // namespace

Schedule reduceBinomial(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, ceilLog2(s.size), binomialStep};
}

Schedule reduceRabenseifner(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 3 * Folding(s).levels + 1, rabenseifnerStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
