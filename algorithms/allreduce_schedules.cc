#include "algorithms/folding.h"
#include "algorithms/schedules.h"

// Operand order: of two operands the one with the lowest contributing rank is
// the left one. Each block is reduced along one tree only, or along equal trees
// on several ranks, so all ranks hold the same bits.

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Step 0 and the last step of every folded algorithm.
Step foldStep(const Setting& s, const Folding& f, int blocks, int round,
              bool first) {
  const Blocks in{Area::kInput, 0, blocks};
  const Blocks out{Area::kOutput, 0, blocks};
  if (!f.folds) {
    return Step::idle(round);
  }
  if (f.member) {
    return first ? Step::recvReduce(round, s.rank + 1, in, out, true)
                 : Step::send(round, s.rank + 1, out);
  }
  return first ? Step::send(round, s.rank - 1, in)
               : Step::recv(round, s.rank - 1, out);
}

Step recursiveDoublingStep(const Setting& s, int i) {
  const Folding f(s);
  const int last = 2 * f.levels + 1;
  const int round = (i + 1) / 2;
  if (i == 0 || i == last) {
    return foldStep(s, f, 1, round, i == 0);
  }
  if (!f.member) {
    return Step::idle(round);
  }
  const int level = round - 1;
  const int peer = f.rankOf(f.index ^ (1 << level));
  const Area area = level == 0 && !f.folds ? Area::kInput : Area::kOutput;
  const Blocks own{area, 0, 1};
  if (i % 2 == 1) {
    return Step::send(round, peer, own);
  }
  return Step::recvReduce(round, peer, own, {Area::kOutput, 0, 1},
                          (f.index >> level) % 2 == 0);
}

Step halvingDoublingStep(const Setting& s, int i) {
  const Folding f(s);
  const int last = 4 * f.levels + 1;
  const int round = (i + 1) / 2;
  if (i == 0 || i == last) {
    return foldStep(s, f, f.power, round, i == 0);
  }
  if (!f.member) {
    return Step::idle(round);
  }
  const bool sends = i % 2 == 1;
  if (round <= f.levels) {
    const int level = round - 1;
    const int other = f.index ^ (1 << level);
    const Area area = level == 0 && !f.folds ? Area::kInput : Area::kOutput;
    if (sends) {
      return Step::send(round, f.rankOf(other),
                        halved(area, f.power, other, level + 1));
    }
    return Step::recvReduce(round, f.rankOf(other),
                            halved(area, f.power, f.index, level + 1),
                            halved(Area::kOutput, f.power, f.index, level + 1),
                            (f.index >> level) % 2 == 0);
  }
  const int level = 2 * f.levels - round;
  const int other = f.index ^ (1 << level);
  if (sends) {
    return Step::send(round, f.rankOf(other),
                      halved(Area::kOutput, f.power, f.index, level + 1));
  }
  return Step::recv(round, f.rankOf(other),
                    halved(Area::kOutput, f.power, other, level + 1));
}

Step ringStep(const Setting& s, int i) {
  const int n = s.size;
  const int round = i / 2;
  const bool sends = i % 2 == 0;
  const int right = wrap(s.rank + 1, n);
  const int left = wrap(s.rank - 1, n);
  if (round < n - 1) {
    if (sends) {
      const Area area = round == 0 ? Area::kInput : Area::kOutput;
      return Step::send(round, right, {area, wrap(s.rank - round, n), 1});
    }
    // What arrives for block b holds b, b + 1, ..., rank - 1 (cyclic): the
    // lowest of all is this rank only where it is rank 0.
    const int block = wrap(s.rank - round - 1, n);
    return Step::recvReduce(round, left, {Area::kInput, block, 1},
                            {Area::kOutput, block, 1}, s.rank == 0);
  }
  const int turn = round - (n - 1);
  if (sends) {
    return Step::send(round, right,
                      {Area::kOutput, wrap(s.rank + 1 - turn, n), 1});
  }
  return Step::recv(round, left, {Area::kOutput, wrap(s.rank - turn, n), 1});
}

// Everybody has every vector and reduces them in the order of the ranks.
// Vectors that arrive early wait in blocks of their own.
Step flatStep(const Setting& s, int i) {
  const int messages = 2 * (s.size - 1);
  const Blocks in{Area::kInput, 0, 1};
  const Blocks sum{Area::kScratch, 0, 1};
  if (i < messages) {
    const int turn = i / 2 + 1;
    const int from = wrap(s.rank - turn, s.size);
    return i % 2 == 0 ? Step::send(0, wrap(s.rank + turn, s.size), in)
                      : Step::recv(0, from, {Area::kScratch, from, 1});
  }
  const int k = i - messages;
  if (k == s.size) {
    return Step::copy(k + 1, sum, {Area::kOutput, 0, 1});
  }
  const Blocks next = k == s.rank ? in : Blocks{Area::kScratch, k, 1};
  if (k > 0) {
    return Step::reduce(k + 1, sum, next);
  }
  return s.rank == 0 ? Step::copy(1, in, sum) : Step::idle(1);
}

}  // namespace

Schedule allreduceRecursiveDoubling(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 2 * Folding(s).levels + 2, recursiveDoublingStep};
}

Schedule allreduceHalvingDoubling(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 4 * Folding(s).levels + 2, halvingDoublingStep};
}

Schedule allreduceRing(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 4 * (s.size - 1), ringStep};
}

Schedule allreduceFlat(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 3 * s.size - 1, flatStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
