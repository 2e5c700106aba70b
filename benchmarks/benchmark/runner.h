// Runs a benchmark as one rank of a job.
#pragma once

#include "benchmarks/benchmark/options.h"

namespace benchmark {

// Connects to the other ranks and measures all sizes; rank 0 prints the
// report. options.rank and .size are this process's. Throws what went wrong.
void runRank(const Options& options);

}  // namespace benchmark
