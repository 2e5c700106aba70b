#include "algorithms/schedules.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

const Blocks kOwnInput{Area::kInput, 0, 1};

// The rank's own block is copied between the rounds 0 and 1, what it sends is
// on its way meanwhile. Below it is step 0; where it really comes says this.
// (Within a round the copy's segments would take turns with those that are
// sent.)
constexpr int sendingFirst(const Setting& s, int i) {
  return i > 2 || s.size == 1 ? i : (i + 1) % 3;
}
constexpr int kCopying = 1;
constexpr int roundOf(int k) { return k == 0 ? 0 : k + 1; }

Step allgatherRingStep(const Setting& s, int i) {
  const int n = s.size;
  const int round = i / 2;
  if (round == n - 1) {
    return Step::copy(round, kOwnInput, {Area::kOutput, s.rank, 1});
  }
  if (i % 2 == 0) {
    return Step::send(round, wrap(s.rank + 1, n),
                      round == 0
                          ? kOwnInput
                          : Blocks{Area::kOutput, wrap(s.rank - round, n), 1});
  }
  return Step::recv(round, wrap(s.rank - 1, n),
                    {Area::kOutput, wrap(s.rank - round - 1, n), 1});
}

// Round k of Bruck's algorithm: before it a rank has the 2^k blocks from its
// own on.
struct BruckRound {
  BruckRound(const Setting& s, int k)
      : distance(1 << k),
        count(distance < s.size - distance ? distance : s.size - distance),
        to(wrap(s.rank - distance, s.size)),
        from(wrap(s.rank + distance, s.size)) {}

  const int distance;
  const int count;
  const int to;
  const int from;
};

// Block j in scratch is that of the rank j above; the end puts them in order.
Step bruckStep(const Setting& s, int position) {
  const int i = sendingFirst(s, position);
  const int k = (i - 1) / 2;
  const int levels = ceilLog2(s.size);
  if (i == 0) {
    return Step::copy(kCopying, kOwnInput, {Area::kScratch, 0, 1});
  }
  if (k == levels) {
    const int upper = s.size - s.rank;
    return i % 2 == 1 ? Step::copy(roundOf(k), {Area::kScratch, 0, upper},
                                   {Area::kOutput, s.rank, upper})
           : s.rank > 0
               ? Step::copy(roundOf(k), {Area::kScratch, upper, s.rank},
                            {Area::kOutput, 0, s.rank})
               : Step::idle(roundOf(k));
  }
  const BruckRound b(s, k);
  return i % 2 == 1 ? Step::send(roundOf(k), b.to,
                                 k == 0 ? kOwnInput
                                        : Blocks{Area::kScratch, 0, b.count})
                    : Step::recv(roundOf(k), b.from,
                                 {Area::kScratch, b.distance, b.count});
}

// The same for blocks of different sizes: received where they belong, in two
// messages where they wrap around.
Step unevenBruckStep(const Setting& s, int position) {
  const int i = sendingFirst(s, position);
  if (i == 0) {
    return Step::copy(kCopying, kOwnInput, {Area::kOutput, s.rank, 1});
  }
  const int k = (i - 1) / 2;
  const BruckRound b(s, k);
  return i % 2 == 1
             ? Step::send(roundOf(k), b.to,
                          b.count == 1 ? kOwnInput
                                       : Blocks{Area::kOutput, s.rank, b.count})
             : Step::recv(roundOf(k), b.from, {Area::kOutput, b.from, b.count});
}

// Before round k a rank has the blocks of the 2^k ranks whose numbers differ
// from its own in the lowest k bits only.
Step recursiveDoublingStep(const Setting& s, int position) {
  const int i = sendingFirst(s, position);
  if (i == 0) {
    return Step::copy(kCopying, kOwnInput, {Area::kOutput, s.rank, 1});
  }
  const int k = (i - 1) / 2;
  const int count = 1 << k;
  const int first = s.rank & -count;
  if (i % 2 == 1) {
    return Step::send(roundOf(k), s.rank ^ count,
                      k == 0 ? kOwnInput : Blocks{Area::kOutput, first, count});
  }
  return Step::recv(roundOf(k), s.rank ^ count,
                    {Area::kOutput, first ^ count, count});
}

// After round 0 a rank has the blocks of its pair: 2k and 2k + 1. From then on
// it passes on the pair that it got last, to its two neighbours in turn, so
// that pairs move away from their origin in both directions.
Step neighbourExchangeStep(const Setting& s, int position) {
  const int i = sendingFirst(s, position);
  if (i == 0) {
    return Step::copy(kCopying, kOwnInput, {Area::kOutput, s.rank, 1});
  }
  const int round = (i - 1) / 2;
  const bool sends = i % 2 == 1;
  // Even ranks turn to the one above in even rounds, odd ranks in odd ones.
  const bool above = (s.rank + round) % 2 == 0;
  const int peer = wrap(s.rank + (above ? 1 : -1), s.size);
  if (round == 0) {
    return sends ? Step::send(0, peer, kOwnInput)
                 : Step::recv(0, peer, {Area::kOutput, peer, 1});
  }
  const int pair = s.rank & ~1;
  // The pair that arrives in a round r >= 1 began r (or r + 1) ranks away.
  const auto arrives = [&](int r, bool fromAbove) {
    const int distance = (r + 1) & ~1;
    return wrap(pair + (fromAbove ? distance : -distance), s.size);
  };
  if (sends) {
    const int first = round == 1 ? pair : arrives(round - 1, !above);
    return Step::send(roundOf(round), peer, {Area::kOutput, first, 2});
  }
  return Step::recv(roundOf(round), peer,
                    {Area::kOutput, arrives(round, above), 2});
}

}  // namespace

Schedule allgatherRing(const Setting& s) {
  return {s, 2 * (s.size - 1) + 1, allgatherRingStep};
}

Schedule allgatherBruck(const Setting& s) {
  return bruckWraps(s.size) ? Schedule{s, 2 * ceilLog2(s.size) + 3, bruckStep}
                            : allgathervBruck(s);
}

Schedule allgathervBruck(const Setting& s) {
  return {s, 2 * ceilLog2(s.size) + 1, unevenBruckStep};
}

Schedule allgatherRecursiveDoubling(const Setting& s) {
  return {s, 2 * ceilLog2(s.size) + 1, recursiveDoublingStep};
}

Schedule allgatherNeighbourExchange(const Setting& s) {
  return {s, s.size + 1, neighbourExchangeStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
