#include "benchmarks/benchmark/turns.h"

#include <algorithm>
#include <stdexcept>

namespace benchmark {

double median(std::vector<double> values) {
  if (values.empty()) {
    throw std::logic_error("no median of nothing");
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

double Turns::ratio(size_t contestant, size_t other) const {
  const auto& mine = times_.at(contestant);
  const auto& theirs = times_.at(other);
  if (mine.size() != theirs.size()) {
    throw std::logic_error("turns of different rounds");
  }
  std::vector<double> ratios;
  for (size_t round = 0; round < mine.size(); round++) {
    ratios.push_back(mine[round] / theirs[round]);
  }
  return median(std::move(ratios));
}

double Turns::seconds(size_t contestant) const {
  return median(times_.at(contestant));
}

}  // namespace benchmark
