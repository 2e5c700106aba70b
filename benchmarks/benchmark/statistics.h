// What the times of one size come to.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "benchmarks/benchmark/registry.h"

namespace benchmark {

struct Row {
  size_t bytes = 0;       // of one vector
  size_t totalBytes = 0;  // that the operation is about: Traffic::algorithm
  size_t elements = 0;
  double minUs = 0;
  double p50Us = 0;
  double p99Us = 0;
  double maxUs = 0;
  double algorithmGBs = 0;  // 10^9 bytes per second, at the median time
  double busGBs = 0;
  size_t iterations = 0;
};

// `nanos` are the times of the iterations; at least one.
Row summarise(std::vector<double> nanos, size_t elements, size_t elementSize,
              const Traffic& traffic);

}  // namespace benchmark
