// The table on stdout, the progress line on stderr, the JSON file.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "benchmarks/benchmark/options.h"
#include "benchmarks/benchmark/statistics.h"

namespace benchmark {

// What holds for all rows.
struct Conditions {
  int ranks = 1;
  std::string device;  // Device::str()
  std::vector<std::string> links;
};

// Rank 0 has one. One thread.
class Report {
 public:
  Report(const Options& options, Conditions conditions);

  void header() const;
  void add(const Row& row);

  // Says on a terminal how far a size is, some times per second.
  void progress(size_t bytes, size_t done, size_t total);

  // The --json file; throws if it cannot be written.
  void writeJson() const;

 private:
  void clearProgress();

  const Options& options_;
  const Conditions conditions_;
  const bool verified_;  // false also where there is nothing to check
  std::vector<Row> rows_;
  const bool terminal_;
  bool progressShown_ = false;
  std::chrono::steady_clock::time_point nextProgress_;
};

}  // namespace benchmark
