// The cost model: what an algorithm's published work takes on a link.
#pragma once

#include <cstddef>

#include "algorithms/catalogue.h"
#include "algorithms/network.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// What a rank's messages and its local work cost.
struct Costs {
  LinkParameters link;
  double reducePerByte = 0;
  double copyPerByte = 0;
};

// Seconds of `work` on `bytes` in total, in segments of at most
// `segmentBytes`: LogGP, and what is reduced while nothing is on the way.
double costOf(const Work& work, size_t bytes, size_t segmentBytes,
              const Costs& costs);

// The part of it that the bytes of the busiest rank take on the link.
double carrying(const Work& work, size_t bytes, const LinkParameters& link);

// The length of segments for which that is least, at most `maxSegmentBytes`.
// Of lengths that cost the same to within a hundredth, the longest.
size_t bestSegment(const Work& work, size_t bytes, size_t maxSegmentBytes,
                   const Costs& costs);

// How many actions a rank has to have in view (see ExpandOptions::window), so
// that its link is busy while messages are on their way: a send and a receive
// for each that fits into a latency. 32 to 64; the most where processors move
// segments to and from several ranks at once.
int windowFor(const Work& work, size_t bytes, size_t segmentBytes,
              const Costs& costs);

// How long the strips of a vector are (see ExpandOptions::stripBytes): where
// the processors move the bytes, so short that a rank's work on one stays in
// its cache, and so long that each of its `ranks` blocks is worth a message. 0:
// not cut.
size_t stripFor(int ranks, const Costs& costs);

}  // namespace algorithms
GLOO_NAMESPACE_END
