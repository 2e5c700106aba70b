#include "algorithms/folding.h"
#include "algorithms/schedules.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Block b starts at rank b + 1 and ends, complete, at rank b.
Step ringStep(const Setting& s, int i) {
  const int round = i / 2;
  const int n = s.size;
  if (i % 2 == 0) {
    const Area area = round == 0 ? Area::kInput : Area::kScratch;
    return Step::send(round, wrap(s.rank + 1, n),
                      {area, wrap(s.rank - round - 1, n), 1});
  }
  const int block = wrap(s.rank - round - 2, n);
  const Blocks target = round == n - 2 ? Blocks{Area::kOutput, 0, 1}
                                       : Blocks{Area::kScratch, block, 1};
  return Step::recvReduce(round, wrap(s.rank - 1, n), {Area::kInput, block, 1},
                          target, s.rank == 0);
}

// The blocks of the ranks for whom members first, first + 1, ... work: the
// members of pairs for two each.
Blocks blocksOf(const Folding& f, Area area, int first, int count) {
  const auto start = [&f](int i) { return i + (i < f.extra ? i : f.extra); };
  return {area, start(first), start(first + count) - start(first)};
}

// The last steps: a member of a pair has both ranks' blocks.
Step unfoldStep(const Setting& s, const Folding& f, int round, bool copies) {
  if (!f.folds || (copies && !f.member)) {
    return Step::idle(round);
  }
  const Blocks out{Area::kOutput, 0, 1};
  if (copies) {
    return Step::copy(round, {Area::kScratch, s.rank, 1}, out);
  }
  return f.member
             ? Step::send(round, s.rank + 1, {Area::kScratch, s.rank + 1, 1})
             : Step::recv(round, s.rank - 1, out);
}

// The halves that members exchange are those of the members' numbers, highest
// bit first, so that each ends with its own blocks.
Step halvingStep(const Setting& s, int i) {
  const Folding f(s);
  const int round = (i + 1) / 2;
  const int last = 2 * f.levels + 1;
  if (i >= last) {
    return unfoldStep(s, f, f.levels + 1, i > last);
  }
  if (i == 0) {
    const Blocks in{Area::kInput, 0, s.size};
    return !f.folds   ? Step::idle(0)
           : f.member ? Step::recvReduce(0, s.rank + 1, in,
                                         {Area::kScratch, 0, s.size}, true)
                      : Step::send(0, s.rank - 1, in);
  }
  if (!f.member) {
    return Step::idle(round);
  }
  const int half = f.power >> round;
  const int other = f.index ^ half;
  const Area area = round == 1 && !f.folds ? Area::kInput : Area::kScratch;
  if (i % 2 == 1) {
    return Step::send(round, f.rankOf(other),
                      blocksOf(f, area, other & ~(half - 1), half));
  }
  const int first = f.index & ~(half - 1);
  const Blocks target = half == 1 && !f.folds
                            ? Blocks{Area::kOutput, 0, 1}
                            : blocksOf(f, Area::kScratch, first, half);
  return Step::recvReduce(round, f.rankOf(other),
                          blocksOf(f, area, first, half), target,
                          (f.index & half) == 0);
}

// In turn t everybody sends t ranks up. What a rank receives comes from the
// ranks below it in turn and then, from the highest one down: from then on it
// holds the contribution of rank 0 itself.
Step pairwiseStep(const Setting& s, int i) {
  const int turn = i / 2 + 1;
  const int to = wrap(s.rank + turn, s.size);
  const int from = wrap(s.rank - turn, s.size);
  const Blocks out{Area::kOutput, 0, 1};
  if (i % 2 == 0) {
    return Step::send(turn, to, {Area::kInput, to, 1});
  }
  return Step::recvReduce(turn, from,
                          turn == 1 ? Blocks{Area::kInput, s.rank, 1} : out,
                          out, from > s.rank);
}

}  // namespace

Schedule reduceScatterRing(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 2 * (s.size - 1), ringStep};
}

Schedule reduceScatterHalving(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 2 * Folding(s).levels + 3, halvingStep};
}

Schedule reduceScatterPairwise(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 2 * (s.size - 1), pairwiseStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
