#include "benchmarks/benchmark/turns.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "benchmarks/support/median.h"

namespace benchmark {
namespace {

TEST(Turns, TheMedianIsTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(2, support::median({3, 1, 2}));
  EXPECT_EQ(2.5, support::median({4, 1, 2, 3}));
  EXPECT_THROW(support::median({}), std::logic_error);
}

// Equal contestants on a host that gets slower and slower, but for one turn.
TEST(Turns, AHostThatChangesMakesNoDifference) {
  Turns turns(2);
  for (int round = 0; round < 9; round++) {
    turns.add(0, 1 << round);
    turns.add(1, round == 4 ? 1000 : 1 << round);
  }
  EXPECT_EQ(1, turns.ratio(1, 0));
  EXPECT_EQ(16, turns.seconds(0));
}

TEST(Turns, WhoIsSlowerInMostRoundsIsSlower) {
  Turns turns(3);
  for (const double host : {1.0, 3.0, 2.0}) {
    turns.add(0, 1.0 * host);
    turns.add(2, 1.5 * host);
  }
  EXPECT_EQ(1.5, turns.ratio(2, 0));
  EXPECT_DOUBLE_EQ(1 / 1.5, turns.ratio(0, 2));
  EXPECT_THROW(turns.ratio(1, 0), std::logic_error);
}

}  // namespace
}  // namespace benchmark
