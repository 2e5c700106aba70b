// --tune: measures what selection has to know of a network, and writes it down.
#pragma once

#include "benchmarks/benchmark/contest.h"
#include "benchmarks/benchmark/options.h"

namespace benchmark {

// The algorithms that are the best from so many bytes on, by ascending bytes.
struct BestFrom {
  size_t bytes = 0;
  std::string algorithm;
};

// The times of the algorithms of one collective at one size.
struct Measured {
  size_t bytes = 0;
  std::vector<Contestant> algorithms;
  double autoUs = 0;  // of the library's choice, which may be none of them
};

// Rows of a table. Between two sizes with different winners, where the lines
// between their times cross in a doubly logarithmic plot. A winner keeps its
// place where another is hardly better. `measured` by ascending bytes.
std::vector<BestFrom> bestOf(const std::vector<Measured>& measured);

// All ranks call it; rank 0 writes options.tuneFile: what it says of other
// networks, and of collectives that are not measured now, stays. Throws
// std::runtime_error if it cannot be written.
void tune(const Options& options, Contest& contest);

}  // namespace benchmark
