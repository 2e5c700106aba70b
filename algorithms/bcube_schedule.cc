#include "algorithms/schedules.h"

// The ranks' numbers are written in a mixed radix whose digits' ranges are
// factors of the size. In round i of the reduce-scatter the ranks that differ
// in digit i alone exchange parts of what they still work on; the allgather is
// the reverse.

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Of `rest`: the largest factor that is at most the radix; if there is none,
// the smallest factor.
int nextFactor(int rest, int radix) {
  for (int f = radix < rest ? radix : rest; f >= 2; f--) {
    if (rest % f == 0) {
      return f;
    }
  }
  for (int f = 2; f * f <= rest; f++) {
    if (rest % f == 0) {
      return f;
    }
  }
  return rest;
}

struct Level {
  int index = 0;
  int factor = 1;  // range of this digit
  int stride = 1;  // between ranks that differ by one in this digit
  int digit = 0;   // of this rank
  int first = 0;   // blocks that this rank works on
  int count = 1;
};

Level firstLevel(const Setting& s) {
  const int factor = nextFactor(s.size, s.radix);
  return {0, factor, 1, s.rank % factor, 0, s.size};
}

Level nextLevel(const Setting& s, const Level& level) {
  const int stride = level.stride * level.factor;
  const int part = level.count / level.factor;
  const int factor =
      stride == s.size ? 1 : nextFactor(s.size / stride, s.radix);
  return {level.index + 1,
          factor,
          stride,
          s.rank / stride % factor,
          level.first + level.digit * part,
          part};
}

// In turn k of a round each rank sends to the digit k + 1 above its own and
// receives from the one as far below (cyclic): whatever the window, the two
// ends of a message are in the same turn.
int partnerDigit(const Level& level, int i) {
  const int k = i / 2 + 1;
  return wrap(level.digit + (i % 2 == 0 ? k : -k), level.factor);
}

Blocks partOf(const Level& level, Area area, int digit) {
  const int part = level.count / level.factor;
  return {area, level.first + digit * part, part};
}

Step reduceScatterStep(const Setting& s, const Level& level, int i) {
  const bool sends = i % 2 == 0;
  const int digit = partnerDigit(level, i);
  const int peer = s.rank + (digit - level.digit) * level.stride;
  const Area sent = level.index == 0 ? Area::kInput : Area::kOutput;
  if (sends) {
    return Step::send(level.index, peer, partOf(level, sent, digit));
  }
  // Lower digits come first, then the highest: the own sum holds the lowest
  // contribution from then on.
  const Area own = level.index == 0 && i == 1 ? Area::kInput : Area::kOutput;
  return Step::recvReduce(level.index, peer, partOf(level, own, level.digit),
                          partOf(level, Area::kOutput, level.digit),
                          digit > level.digit);
}

Step allgatherStep(const Setting& s, const Level& level, int levels, int i) {
  const int round = 2 * levels - 1 - level.index;
  const bool sends = i % 2 == 0;
  const int digit = partnerDigit(level, i);
  const int peer = s.rank + (digit - level.digit) * level.stride;
  if (sends) {
    return Step::send(round, peer, partOf(level, Area::kOutput, level.digit));
  }
  return Step::recv(round, peer, partOf(level, Area::kOutput, digit));
}

int levelsOf(const Setting& s) {
  int levels = 0;
  for (Level l = firstLevel(s); l.factor > 1; l = nextLevel(s, l)) {
    levels++;
  }
  return levels;
}

// Steps of one half.
int halfOf(const Setting& s) {
  int steps = 0;
  for (Level l = firstLevel(s); l.factor > 1; l = nextLevel(s, l)) {
    steps += 2 * (l.factor - 1);
  }
  return steps;
}

Step bcubeStep(const Setting& s, int i) {
  const int half = halfOf(s);
  const bool gathers = i >= half;
  // Steps of the allgather are numbered from the end: its levels run backwards.
  int at = gathers ? 2 * half - 1 - i : i;
  Level level = firstLevel(s);
  while (at >= 2 * (level.factor - 1)) {
    at -= 2 * (level.factor - 1);
    level = nextLevel(s, level);
  }
  if (!gathers) {
    return reduceScatterStep(s, level, at);
  }
  return allgatherStep(s, level, levelsOf(s), 2 * (level.factor - 1) - 1 - at);
}

}  // namespace

Schedule allreduceBcube(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 2 * halfOf(s), bcubeStep};
}

Exchanges bcubeExchanges(const Setting& s) {
  return {levelsOf(s), s.size == 1 ? 0 : halfOf(s) / 2};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
