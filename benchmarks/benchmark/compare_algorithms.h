// --all-algorithms: the library's choice beside every algorithm.
#pragma once

#include "benchmarks/benchmark/contest.h"
#include "benchmarks/benchmark/options.h"

namespace benchmark {

// A table per collective on stdout, and the --json file; from rank 0.
void compareAlgorithms(const Options& options, Contest& contest);

}  // namespace benchmark
