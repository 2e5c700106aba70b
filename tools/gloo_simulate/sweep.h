// Algorithms over sizes and numbers of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/selection.h"
#include "algorithms/simulate/simulate.h"
#include "tools/gloo_simulate/options.h"

namespace gloo_simulate {

struct Row {
  std::string algorithm;
  bool chosen = false;  // by the library, on this network
  int ranks = 0;
  size_t bytes = 0;         // of the vector, or of all ranks' blocks together
  size_t segmentBytes = 0;  // at most
  double seconds = 0;
  double boundSeconds = 0;  // see algorithms/simulate/bound.h
  std::string boundTerm;
  int rounds = 0;
  size_t busiestBytes = 0;
  uint64_t messages = 0;

  double ratio() const { return boundSeconds > 0 ? seconds / boundSeconds : 1; }
};

// The options' for so many ranks.
gloo::algorithms::NetworkParameters networkOf(const Options& options,
                                              int ranks);

// One call of `algorithm` for about `bytes` in total, at least an element per
// rank.
gloo::algorithms::simulate::Scenario scenarioOf(
    const Options& options, const gloo::algorithms::AlgorithmInfo& algorithm,
    int ranks, size_t bytes);

// Simulates what the options ask for, ordered by ranks, bytes, catalogue.
// `note` is told, in a line, of what is left out: what does not work for a
// number of ranks, or is too much; `progress` what is being done.
std::vector<Row> sweep(const Options& options,
                       const std::function<void(const std::string&)>& note,
                       const std::function<void(const std::string&)>& progress);

}  // namespace gloo_simulate
