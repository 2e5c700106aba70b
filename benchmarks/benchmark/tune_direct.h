// The part of --tune that is about collectives in memory that all ranks have
// mapped: from which sizes on they do what.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/benchmark/contest.h"
#include "benchmarks/benchmark/options.h"

namespace benchmark {

// The times of two ways at one size: the one for short vectors, and the one for
// those from a threshold on.
struct Ways {
  size_t bytes = 0;
  double shortUs = 0;
  double longUs = 0;
};

// Where, between two sizes, the second way becomes as quick as the first: where
// the lines between their times cross in a doubly logarithmic plot.
size_t crossing(const Ways& low, const Ways& high);

// The threshold that costs least over all sizes, as a share of the time: one
// size with another winner, which may be noise, does not move it. None: the
// second way wins nowhere. `ways` by ascending bytes.
std::optional<size_t> thresholdOf(const std::vector<Ways>& ways);

// The same of what was measured. Where the second way wins nowhere: above the
// last of `ways`, as what is shipped may be lower, and no lower than `shipped`,
// which counts for the sizes that were not measured. None: there are no `ways`.
std::optional<size_t> measuredThreshold(const std::vector<Ways>& ways,
                                        size_t shipped);

// All ranks call it. Measures them, if there is such memory, and has rank 0
// write them into options.tuneFile, which has the network already and keeps
// what was not measured. What was found, for the user.
std::string tuneDirect(const Options& options, Contest& contest);

}  // namespace benchmark
