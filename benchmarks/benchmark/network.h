// Measures the parameters of the cost model on a connected network.
#pragma once

#include <cstddef>

#include "benchmarks/benchmark/contest.h"
#include "benchmarks/benchmark/options.h"

namespace benchmark {

// As algorithms/network.h; seconds.
struct Network {
  double latency = 0;
  double overhead = 0;
  double gap = 0;
  double gapPerByte = 0;
  double reducePerByte = 0;
  double copyPerByte = 0;
  size_t segmentBytes = 0;  // with which a ring is the quickest
};

// All ranks call it, and get the same. They send all at once: so the network
// and the host are as busy as in a collective.
Network measureNetwork(Contest& contest, const Options& options);

}  // namespace benchmark
