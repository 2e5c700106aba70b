#pragma once

#include <string>

#include "benchmarks/benchmark/options.h"

namespace benchmark {

// Throws UsageError, which says what is wrong, unless the options can be run.
void validate(const Options& options);

// "here: tcp"
std::string availableTransports();

}  // namespace benchmark
