#include "algorithms/schedules.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// In turn t everybody sends t ranks up and receives from t ranks below: the
// executor's window keeps a few turns in flight.
Step pairwiseStep(const Setting& s, int i) {
  const int turn = i / 2 + 1;
  if (turn == s.size) {
    return Step::copy(turn, {Area::kInput, s.rank, 1},
                      {Area::kOutput, s.rank, 1});
  }
  const int to = wrap(s.rank + turn, s.size);
  const int from = wrap(s.rank - turn, s.size);
  return i % 2 == 0 ? Step::send(turn, to, {Area::kInput, to, 1})
                    : Step::recv(turn, from, {Area::kOutput, from, 1});
}

// Bruck's algorithm. Block j of a rank, in scratch, is the one that has to go j
// ranks up; in round k the blocks whose number has bit k go 2^k up. They lie in
// runs of 2^k blocks: more than one run is packed for sending.
struct Bruck {
  explicit Bruck(const Setting& s) : size(s.size), levels(ceilLog2(s.size)) {}

  int runs(int k) const { return (size - (1 << k) - 1) / (2 << k) + 1; }
  int packs(int k) const { return runs(k) > 1 ? runs(k) : 0; }
  // What arrives in the last round goes from there to the output.
  int unpacks(int k) const { return k + 1 < levels ? runs(k) : 0; }
  int stepsOf(int k) const { return packs(k) + 2 + unpacks(k); }

  // Run m of round k.
  Blocks run(int k, int m) const {
    const int first = (2 * m + 1) << k;
    const int count = 1 << k;
    return {Area::kScratch, first, count < size - first ? count : size - first};
  }
  int blocksOf(int k) const {
    const Blocks last = run(k, runs(k) - 1);
    return ((runs(k) - 1) << k) + last.count;
  }
  // The same runs one after the other, where they are packed or arrive.
  Blocks packed(int k, int m) const {
    return {Area::kScratch, size + (m << k), run(k, m).count};
  }
  Blocks arrived(int k, int m) const {
    return {Area::kScratch, size + size / 2 + (m << k), run(k, m).count};
  }

  const int size;
  const int levels;
};

// Block j is input block rank + j.
Step rotateStep(const Setting& s, int i) {
  const int upper = s.size - 1 - s.rank;
  const Step step = i == 0 ? Step::copy(0, {Area::kInput, s.rank + 1, upper},
                                        {Area::kScratch, 1, upper})
                           : Step::copy(0, {Area::kInput, 0, s.rank},
                                        {Area::kScratch, upper + 1, s.rank});
  return step.source.count > 0 ? step : Step::idle(0);
}

Step bruckRoundStep(const Setting& s, const Bruck& b, int k, int i) {
  const int round = 3 * k + 1;
  const int packs = b.packs(k);
  if (i < packs) {
    return Step::copy(round, b.run(k, i), b.packed(k, i));
  }
  if (i > packs + 1) {
    const int m = i - packs - 2;
    return Step::copy(round + 2, b.arrived(k, m), b.run(k, m));
  }
  Blocks blocks = i == packs + 1 ? b.arrived(k, 0)
                  : packs > 0    ? b.packed(k, 0)
                                 : b.run(k, 0);
  blocks.count = b.blocksOf(k);
  return i == packs
             ? Step::send(round + 1, wrap(s.rank + (1 << k), s.size), blocks)
             : Step::recv(round + 1, wrap(s.rank - (1 << k), s.size), blocks);
}

// Now block j is the one that came from j ranks below.
Step bruckEndStep(const Setting& s, const Bruck& b, int j) {
  const int round = 3 * b.levels + 1;
  const int last = 1 << (b.levels - 1);
  const Blocks target{Area::kOutput, wrap(s.rank - j, s.size), 1};
  if (j == 0) {
    return Step::copy(round, {Area::kInput, s.rank, 1}, target);
  }
  const int at = j < last ? j : b.arrived(b.levels - 1, 0).first + j - last;
  return Step::copy(round, {Area::kScratch, at, 1}, target);
}

Step bruckStep(const Setting& s, int i) {
  const Bruck b(s);
  if (i < 2) {
    return rotateStep(s, i);
  }
  i -= 2;
  for (int k = 0; k < b.levels; k++) {
    if (i < b.stepsOf(k)) {
      return bruckRoundStep(s, b, k, i);
    }
    i -= b.stepsOf(k);
  }
  return bruckEndStep(s, b, i);
}

}  // namespace

Schedule alltoallPairwise(const Setting& s) {
  return {s, 2 * (s.size - 1) + 1, pairwiseStep};
}

Schedule alltoallBruck(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  const Bruck b(s);
  int steps = 2 + s.size;
  for (int k = 0; k < b.levels; k++) {
    steps += b.stepsOf(k);
  }
  return {s, steps, bruckStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
