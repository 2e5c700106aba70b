#include "benchmarks/benchmark/statistics.h"

#include <algorithm>
#include <stdexcept>

namespace benchmark {
namespace {

// The smallest value that is not below `part` of all; sorted input.
double percentile(const std::vector<double>& sorted, double part) {
  const auto index = size_t(part * double(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

}  // namespace

Row summarise(std::vector<double> nanos, size_t elements, size_t elementSize,
              const Traffic& traffic) {
  if (nanos.empty()) {
    throw std::logic_error("no iteration was timed");
  }
  std::sort(nanos.begin(), nanos.end());
  Row row;
  row.elements = elements;
  row.bytes = elements * elementSize;
  row.totalBytes = size_t(double(row.bytes) * traffic.algorithm);
  row.iterations = nanos.size();
  row.minUs = nanos.front() / 1e3;
  row.p50Us = percentile(nanos, 0.5) / 1e3;
  row.p99Us = percentile(nanos, 0.99) / 1e3;
  row.maxUs = nanos.back() / 1e3;
  row.algorithmGBs = double(row.totalBytes) / std::max(row.p50Us * 1e3, 1.0);
  row.busGBs = row.algorithmGBs * traffic.bus;
  return row;
}

}  // namespace benchmark
