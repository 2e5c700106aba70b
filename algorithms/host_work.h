// What an algorithm asks of a host whose ranks share processors or a network
// card: counted on the schedules themselves.
#pragma once

#include <cstddef>

#include "algorithms/catalogue.h"
#include "algorithms/network.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Of all ranks of one host together.
struct HostWork {
  // Seconds of processors: messages sent and received, waits for messages,
  // reductions and copies; and the bytes that processors move.
  double processorSeconds = 0;
  // Seconds that the card is busy, in the busier direction.
  double cardSeconds = 0;
  // What part of the bytes and of the messages of the busiest ranks is between
  // hosts, of those that have most there, and inside, of those that have most
  // inside.
  double crossingMoved = 0;
  double crossingMessages = 0;
  double insideMoved = 0;
  double insideMessages = 0;
};

// The most that any host of setting.hosts has to do for `bytes` in total, in
// segments of at most `segmentBytes`; strips, which are many segments long and
// cost hardly a message more, do not count. Blocks that are shorter than an
// element of `elementSize` bytes do not travel. Of many hosts and of many ranks
// on one, some stand for the others: the time it takes grows with the ranks,
// not with their square. The same on all ranks.
HostWork busiestHost(const AlgorithmInfo& algorithm, const Setting& setting,
                     size_t bytes, size_t elementSize, size_t segmentBytes,
                     const NetworkParameters& network);

}  // namespace algorithms
GLOO_NAMESPACE_END
