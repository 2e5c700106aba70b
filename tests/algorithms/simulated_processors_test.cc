// Of hosts of which not all have as many ranks as they might.
#include <gtest/gtest.h>

#include "algorithms/simulate/links.h"
#include "algorithms/simulate/processors.h"
#include "algorithms/simulate/simulate.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {
namespace {

Scenario crowded(int size, int ranksPerHost, int cores) {
  Scenario s;
  s.job.algorithm = findAlgorithm(Collective::kAllreduce, "recursive_doubling");
  s.job.size = size;
  s.job.count = 8;
  s.job.options.inPlace = true;
  s.job.options.segmentBytes = 8;
  s.network.between = {5e-6, 1e-6, 1e-6, 1e-10};
  s.network.inside = s.network.between;
  s.network.ranksPerHost = ranksPerHost;
  s.network.coresPerHost = cores;
  s.network.switching = 1e-6;
  s.network.localStep = 1e-6;
  return s;
}

TEST(SimulatedProcessors, OnlyRanksThatAreThereShareThem) {
  EXPECT_EQ(simulate(crowded(3, 3, 4)).seconds,
            simulate(crowded(3, 8, 4)).seconds);
  EXPECT_LT(simulate(crowded(3, 8, 3)).seconds,
            simulate(crowded(3, 8, 2)).seconds);
}

TEST(SimulatedProcessors, AHostWithFewerRanksMayHaveOneForEach) {
  const Scenario s = crowded(11, 8, 4);
  Processors processors(s);
  const Links links(s);
  for (int rank = 0; rank < 8; rank++) {
    EXPECT_FALSE(processors.runs(rank));
    EXPECT_EQ(ticksOf(1e-6), links.copying(rank, 1));
  }
  for (int rank = 8; rank < 11; rank++) {
    EXPECT_TRUE(processors.runs(rank));
    processors.yield(rank, 0);
    EXPECT_TRUE(processors.runs(rank));
    EXPECT_FALSE(processors.next(rank, 0));
    EXPECT_EQ(0, links.copying(rank, 1));
  }
}

}  // namespace
}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
