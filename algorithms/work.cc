#include "algorithms/work.h"

#include <algorithm>

#include "algorithms/folding.h"
#include "algorithms/schedules.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::work {
namespace {

// The part of the vector that is not a rank's own.
double others(double ranks) { return (ranks - 1) / ranks; }

double levels(const Setting& s) { return ceilLog2(s.size); }

// Of a binomial tree, in which a rank's messages do not wait for each other:
// the most bits of a number below the size.
double hops(const Setting& s) { return ceilLog2(s.size + 1) - 1; }

// What folding costs: the vector there (reduced) and back.
Work folded(const Setting& s, Work work) {
  if (Folding(s).extra > 0) {
    work.rounds += 2;
    work.moved += 1;
    work.reduced += 1;
  }
  return work;
}

// Of Bruck's rounds, how many wait for each other. The last one sends the
// blocks that are left, which have all come in the first rounds, if they are
// few, or are the rank's own: with 3 ranks its two rounds are one.
double bruckRounds(int ranks) {
  const int full = ceilLog2(ranks) - 1;  // before the last
  if (full < 1) {
    return full + 1;
  }
  return std::max(full, 1 + ceilLog2(ranks - (1 << full)));
}

}  // namespace

Work recursiveDoubling(const Setting& s) {
  const double levels = Folding(s).levels;
  return folded(s, {levels, levels, levels});
}

Work halvingDoubling(const Setting& s) {
  const Folding f(s);
  return folded(s, {2.0 * f.levels, 2 * others(f.power), others(f.power)});
}

Work allreduceRing(const Setting& s) {
  const double n = s.size;
  return {2 * (n - 1), 2 * others(n), others(n)};
}

Work bcube(const Setting& s) {
  const Exchanges e = bcubeExchanges(s);
  return {2.0 * e.rounds, 2 * others(s.size), others(s.size), 2.0 * e.messages};
}

Work flatAllreduce(const Setting& s) {
  const double n = s.size;
  return {n > 1 ? 1.0 : 0.0, n - 1, n - 1, n - 1};
}

// Who sends most receives least.
Work binomial(const Setting& s) {
  Work work{hops(s), levels(s), 0, levels(s), 0, 0, levels(s)};
  work.sentMore = levels(s);
  return work;
}

Work scatterAllgather(const Setting& s) {
  // The root receives in the second half only.
  Work work{levels(s) + s.size - 1, 2 * others(s.size), 0, 0, 0, 0,
            3 * others(s.size)};
  work.sentMore = others(s.size);
  return work;
}

Work chain(const Setting& s) {
  const double n = s.size;
  Work work{n - 1, n > 1 ? 1.0 : 0.0,          0, 0, std::max(0.0, n - 2),
            0,     std::clamp(n - 1, 0.0, 2.0)};
  // Of two ranks, the root is the busiest.
  work.sentMore = n == 2 ? 1 : 0;
  return work;
}

Work binomialReduce(const Setting& s) {
  return {hops(s), levels(s), levels(s), levels(s), 0, 0, levels(s)};
}

// Without folding as in the paper. Else a member of a pair is the busiest: the
// root, if it is one, or the one that gathers for longest.
Work rabenseifnerReduce(const Setting& s) {
  const Folding f({s.root, s.size}, s.root);
  const double part = others(f.power);
  Work work{2.0 * f.levels, 2 * part, part};
  work.bothWays = 3 * part;  // of the root, which gathers
  if (f.extra > 0) {
    work.rounds += 1;
    work.reduced += 1;
    double gathered = part;
    if (!f.folds) {
      // Its last level is where its number first differs from the root's.
      const int last = floorPowerOfTwo(f.index ^ (f.extra - 1));
      gathered = 0.5 / last - 1.0 / f.power;
    }
    work.moved = std::max(work.moved, 1 + part + gathered);
    work.bothWays += 1;
  }
  return work;
}

Work allgatherRing(const Setting& s) {
  return {s.size - 1.0, others(s.size), 0};
}

Work neighbourExchange(const Setting& s) {
  return {s.size / 2.0, others(s.size), 0};
}

Work binomialGather(const Setting& s) {
  return {hops(s), others(s.size), 0, levels(s), 0, 0, others(s.size)};
}

Work allgatherDoubling(const Setting& s) {
  return {levels(s), others(s.size), 0};
}

Work unevenBruck(const Setting& s) {
  return {bruckRounds(s.size), others(s.size), 0, levels(s)};
}

// The result is put in order at the end, but for few ranks.
Work allgatherBruck(const Setting& s) {
  Work work = unevenBruck(s);
  work.copied = bruckWraps(s.size) ? 1 : 0;
  return work;
}

Work dissemination(const Setting& s) {
  return {levels(s), levels(s), 0, 0, 0, 0, levels(s)};
}

Work reduceScatterRing(const Setting& s) {
  return {s.size - 1.0, others(s.size), others(s.size)};
}

// With folding, the first rank is the busiest: it works on most pairs.
Work recursiveHalving(const Setting& s) {
  const Folding f(s);
  if (f.extra == 0) {
    return {levels(s), others(s.size), others(s.size)};
  }
  double received = s.size;
  for (int members = f.power / 2; members >= 1; members /= 2) {
    received += members + std::min(members, f.extra);
  }
  return {f.levels + 2.0, received / s.size, received / s.size};
}

Work direct(const Setting& s) {
  return {s.size > 1 ? 1.0 : 0.0, others(s.size), 0, s.size - 1.0};
}

Work directRooted(const Setting& s) {
  Work work = direct(s);
  work.bothWays = work.moved;
  return work;
}

Work directReduce(const Setting& s) {
  Work work = direct(s);
  work.reduced = others(s.size);
  return work;
}

// No message waits for another, but each rank's are one after the other: the
// last meeting is that of the last two ranks.
Work scatteredInOrder(const Setting& s) {
  Work work = directReduce(s);
  work.messages = std::max(0, 2 * s.size - 3);
  work.copied = s.size > 1 ? 1.0 / s.size : 0;
  return work;
}

Work gatheredInOrder(const Setting& s) {
  Work work = scatteredInOrder(s);
  work.rounds *= 2;
  work.moved *= 2;
  work.messages = std::max(0, 3 * s.size - 4);
  return work;
}

// The root has its last meeting the later the higher its number is.
Work collectedInOrder(const Setting& s) {
  Work work = gatheredInOrder(s);
  work.bothWays = 3 * others(s.size);  // of the root, which collects
  if (s.size > 2) {
    const int late = std::max(0, s.root - 1) - (s.root == s.size - 1 ? 1 : 0);
    work.messages = 2 * s.size - 1 + late;
  }
  return work;
}

Work alltoallBruck(const Setting& s) {
  double blocks = 0;
  for (int bit = 1; bit < s.size; bit *= 2) {
    blocks += s.size / (2 * bit) * bit + std::max(0, s.size % (2 * bit) - bit);
  }
  // Rotated, packed and unpacked in each round, and put in order.
  const double moved = blocks / s.size;
  return {bruckRounds(s.size), moved, 0, levels(s), 0, 2 + 2 * moved};
}

}  // namespace algorithms::work
GLOO_NAMESPACE_END
