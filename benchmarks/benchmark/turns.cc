#include "benchmarks/benchmark/turns.h"

#include <stdexcept>
#include <utility>

#include "benchmarks/support/median.h"

namespace benchmark {

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
  return support::median(std::move(ratios));
}

double Turns::seconds(size_t contestant) const {
  return support::median(times_.at(contestant));
}

}  // namespace benchmark
