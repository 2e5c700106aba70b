// The lower bound, on every network that has a name.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/hosts.h"
#include "algorithms/simulate/bound.h"
#include "tools/gloo_simulate/networks.h"
#include "tools/gloo_simulate/sweep.h"

namespace gloo_simulate {
namespace {

namespace algorithms = gloo::algorithms;
namespace simulate = gloo::algorithms::simulate;

// Without the latency, which an algorithm whose messages overlap can be below.
void expectAboveTheBound(const Options& options,
                         const algorithms::AlgorithmInfo& info, int ranks,
                         size_t bytes, const std::string& where) {
  simulate::Scenario s = scenarioOf(options, info, ranks, bytes);
  const auto hosts =
      algorithms::HostMap::ofEqualHosts(ranks, s.network.ranksPerHost);
  s.job.hosts = &hosts;
  s.job.options.segmentBytes = size_t{64} << 10;
  if (!info.offers(s.job.setting(0))) {
    return;
  }
  const size_t parts = info.blocks == nullptr ? static_cast<size_t>(ranks) : 1;
  const simulate::Bound bound = simulate::lowerBound(
      info.collective, ranks, s.job.count * parts * s.job.options.elementSize,
      s.network);
  const double seconds = simulate::simulate(s).seconds;
  EXPECT_GE(seconds * (1 + 1e-9) + 1e-10,
            std::max(bound.bandwidth, bound.reduction))
      << s.job.str() << ", " << where << ", "
      << seconds / std::max(bound.bandwidth, bound.reduction);
}

void expectAboveTheBound(const Options& options, const std::string& where) {
  for (const algorithms::AlgorithmInfo& info : algorithms::catalogue()) {
    for (const int ranks : {2, 3, 5, 8, 12}) {
      for (const size_t bytes : {size_t{1000}, size_t{2} << 20}) {
        expectAboveTheBound(options, info, ranks, bytes, where);
      }
    }
  }
}

TEST(SimulatedBound, NothingIsBelowItOnAnyNetwork) {
  for (const NamedNetwork& between : networks()) {
    Options options;
    options.tuning = between.tuning;
    options.oneHost = between.isHost;
    expectAboveTheBound(options, between.name);
    options.oneHost = false;
    for (const NamedNetwork& inside : networks()) {
      options.tuning.network.inside = inside.tuning.network.between;
      for (const int ranksPerHost : {2, 4}) {
        options.tuning.network.ranksPerHost = ranksPerHost;
        expectAboveTheBound(options, between.name + ", inside " + inside.name +
                                         ", " + std::to_string(ranksPerHost) +
                                         " per host");
      }
    }
  }
}

}  // namespace
}  // namespace gloo_simulate
