// One schedule as a picture: who sends which blocks to whom in which round. A
// rank sends one message per round and receives one; local work takes no time.
#pragma once

#include <string>

#include "algorithms/catalogue.h"

namespace gloo_simulate {

struct Drawing {
  const gloo::algorithms::AlgorithmInfo* algorithm = nullptr;
  int ranks = 8;
  int root = 0;
  int radix = 2;
  int segments = 1;  // of each block
  int ranksPerHost = 1;
};

// A line per round, a column per rank. Throws InvalidOperationException if the
// algorithm does not work for this number of ranks and hosts.
std::string textOf(const Drawing& drawing);

// A space-time diagram: ranks across, rounds down, an arrow per message.
std::string svgOf(const Drawing& drawing);

}  // namespace gloo_simulate
