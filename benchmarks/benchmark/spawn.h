// Runs a job of local processes.
#pragma once

#include "benchmarks/benchmark/options.h"

namespace benchmark {

// Forks options.localRanks ranks that meet in a store of their own, and waits
// for them. Call it before any thread is started. When one fails the others
// are ended, and its error is printed. Returns the exit status of the program;
// no process and no file is left behind.
int runLocalRanks(const Options& options);

}  // namespace benchmark
