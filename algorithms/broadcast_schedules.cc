#include "algorithms/schedules.h"
#include "algorithms/tree.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// The root reads its input and copies it to its output at the end.
Area held(int v) { return v == 0 ? Area::kInput : Area::kOutput; }

Step copyAtRoot(int v, int round, int blocks) {
  return v == 0 ? Step::copy(round, {Area::kInput, 0, blocks},
                             {Area::kOutput, 0, blocks})
                : Step::idle(round);
}

// All steps are one round: segments flow through the tree.
Step binomialStep(const Setting& s, int i) {
  const Tree t(s);
  if (i == 0) {
    return t.v == 0
               ? Step::idle(0)
               : Step::recv(0, t.rankOf(t.parent()), {Area::kOutput, 0, 1});
  }
  if (i == t.levels + 1) {
    return copyAtRoot(t.v, 1, 1);
  }
  const int bit = 1 << (t.levels - i);  // the largest subtree first
  return t.hasChild(bit) ? Step::send(0, t.rankOf(t.v + bit), {held(t.v), 0, 1})
                         : Step::idle(0);
}

// Segments flow from rank to rank.
Step chainStep(const Setting& s, int i) {
  const int v = wrap(s.rank - s.root, s.size);
  if (i == 0) {
    return v == 0
               ? Step::idle(0)
               : Step::recv(0, wrap(s.rank - 1, s.size), {Area::kOutput, 0, 1});
  }
  if (i == 2) {
    return copyAtRoot(v, 1, 1);
  }
  return v == s.size - 1
             ? Step::idle(0)
             : Step::send(0, wrap(s.rank + 1, s.size), {held(v), 0, 1});
}

// In turn k of the ring rank v sends block v - k on, unless the receiver had it
// from the scatter, where each rank gets the blocks of its subtree. (Zhou et
// al., "A Bandwidth-saving Optimization for MPI Broadcast Collective
// Operation", ICPPW 2015.)
Step ringStep(const Setting& s, const Tree& t, int i) {
  const int round = i / 2 + 2;
  const bool sends = i % 2 == 0;
  const int to = sends ? wrap(t.v + 1, s.size) : t.v;
  const int block = wrap(to - 1 - i / 2, s.size);
  if (block >= to && block < to + t.subtree(to)) {
    return Step::idle(round);
  }
  return sends ? Step::send(round, t.rankOf(to), {held(t.v), block, 1})
               : Step::recv(round, t.rankOf(to - 1), {Area::kOutput, block, 1});
}

// Blocks are numbered like the ranks relative to the root.
Step scatterAllgatherStep(const Setting& s, int i) {
  const Tree t(s);
  const int last = t.levels + 1 + 2 * (s.size - 1);
  if (i == last) {
    return copyAtRoot(t.v, s.size + 1, s.size);
  }
  if (i > t.levels) {
    return ringStep(s, t, i - t.levels - 1);
  }
  if (i == 0) {
    return t.v == 0 ? Step::idle(0)
                    : Step::recv(0, t.rankOf(t.parent()),
                                 {Area::kOutput, t.v, t.subtree(t.v)});
  }
  const int child = t.v + (1 << (t.levels - i));  // the largest subtree first
  return t.hasChild(child - t.v)
             ? Step::send(1, t.rankOf(child),
                          {held(t.v), child, t.subtree(child)})
             : Step::idle(1);
}

}  // namespace

Schedule broadcastBinomial(const Setting& s) {
  return {s, ceilLog2(s.size) + 2, binomialStep};
}

Schedule broadcastChain(const Setting& s) { return {s, 3, chainStep}; }

Schedule broadcastScatterAllgather(const Setting& s) {
  return {s, ceilLog2(s.size) + 2 + 2 * (s.size - 1), scatterAllgatherStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
