#include "algorithms/schedules.h"
#include "algorithms/tree.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

const Blocks kOwnInput{Area::kInput, 0, 1};
const Blocks kOwnOutput{Area::kOutput, 0, 1};

Step gatherFlatStep(const Setting& s, int i) {
  if (s.rank != s.root) {
    return Step::send(0, s.root, kOwnInput);
  }
  const int peer = wrap(s.root + 1 + i, s.size);
  const Blocks target{Area::kOutput, peer, 1};
  return peer == s.root ? Step::copy(i, kOwnInput, target)
                        : Step::recv(i, peer, target);
}

Step scatterFlatStep(const Setting& s, int i) {
  if (s.rank != s.root) {
    return Step::recv(0, s.root, kOwnOutput);
  }
  const int peer = wrap(s.root + 1 + i, s.size);
  const Blocks source{Area::kInput, peer, 1};
  return peer == s.root ? Step::copy(i, source, kOwnOutput)
                        : Step::send(i, peer, source);
}

// Scratch blocks are numbered like the ranks relative to the root, so that
// every subtree's are neighbours. The root receives where they belong, all but
// those of the one subtree that has rank 0 in its middle.
Step gatherBinomialStep(const Setting& s, int i) {
  const Tree t(s);
  const bool isRoot = t.v == 0;
  const int mine = t.subtree(t.v);
  if (i == 0) {
    return isRoot     ? Step::copy(0, kOwnInput, {Area::kOutput, s.rank, 1})
           : mine > 1 ? Step::copy(0, kOwnInput, {Area::kScratch, t.v, 1})
                      : Step::idle(0);
  }
  if (i <= t.levels) {
    const int child = t.v + (1 << (i - 1));  // the smallest subtree first
    if (!t.hasChild(child - t.v)) {
      return Step::idle(0);
    }
    const int rank = t.rankOf(child);
    const int count = t.subtree(child);
    const bool direct = isRoot && rank + count <= s.size;
    return Step::recv(0, rank,
                      direct ? Blocks{Area::kOutput, rank, count}
                             : Blocks{Area::kScratch, child, count});
  }
  if (!isRoot) {
    const Blocks all{Area::kScratch, t.v, mine};
    return i > t.levels + 1 ? Step::idle(1)
                            : Step::send(1, t.rankOf(t.parent()),
                                         mine > 1 ? all : kOwnInput);
  }
  // Rank 0 relative to the root, and the child whose subtree has it.
  const int zero = wrap(-s.root, s.size);
  const int child = zero == 0 ? 0 : floorPowerOfTwo(zero);
  if (child == zero) {
    return Step::idle(1);
  }
  const int end = child + t.subtree(child);
  return i == t.levels + 1
             ? Step::copy(1, {Area::kScratch, child, zero - child},
                          {Area::kOutput, t.rankOf(child), zero - child})
             : Step::copy(1, {Area::kScratch, zero, end - zero},
                          {Area::kOutput, 0, end - zero});
}

// The root collects its blocks in the order of the tree.
Step scatterRootStep(const Setting& s, const Tree& t, int i) {
  const Blocks source{Area::kInput, t.rankOf(i), 1};
  if (i < s.size) {
    return Step::copy(0, source,
                      i == 0 ? kOwnOutput : Blocks{Area::kScratch, i, 1});
  }
  const int child = 1 << (t.levels - 1 - (i - s.size));  // largest first
  return Step::send(1, t.rankOf(child),
                    {Area::kScratch, child, t.subtree(child)});
}

Step scatterBinomialStep(const Setting& s, int i) {
  const Tree t(s);
  if (t.v == 0) {
    return scatterRootStep(s, t, i);
  }
  const int mine = t.subtree(t.v);
  if (i == 0) {
    return Step::recv(
        0, t.rankOf(t.parent()),
        mine > 1 ? Blocks{Area::kScratch, t.v, mine} : kOwnOutput);
  }
  if (i == t.levels + 1) {
    return mine > 1 ? Step::copy(1, {Area::kScratch, t.v, 1}, kOwnOutput)
                    : Step::idle(1);
  }
  const int child = t.v + (1 << (t.levels - i));  // largest first
  return t.hasChild(child - t.v)
             ? Step::send(1, t.rankOf(child),
                          {Area::kScratch, child, t.subtree(child)})
             : Step::idle(1);
}

}  // namespace

Schedule gatherFlat(const Setting& s) {
  return {s, s.rank == s.root ? s.size : 1, gatherFlatStep};
}

Schedule scatterFlat(const Setting& s) {
  return {s, s.rank == s.root ? s.size : 1, scatterFlatStep};
}

Schedule gatherBinomial(const Setting& s) {
  return {s, ceilLog2(s.size) + 3, gatherBinomialStep};
}

Schedule scatterBinomial(const Setting& s) {
  const int levels = ceilLog2(s.size);
  return {s, levels + (s.rank == s.root ? s.size : 2), scatterBinomialStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
