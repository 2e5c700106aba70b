#pragma once

#include <string>

#include "benchmarks/benchmark/options.h"

namespace CLI {
class App;
}

namespace benchmark {

// Throws UsageError, which says what is wrong, unless the options can be run.
void validate(const Options& options);

// Throws UsageError if one was given that would change nothing: nobody should
// believe that they measured what they did not.
void refuseIgnored(const CLI::App& app, const Options& options);

// "here: tcp"
std::string availableTransports();

}  // namespace benchmark
