#include "benchmarks/benchmark/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace benchmark {
namespace {

TEST(Statistics, PercentilesOfAHundredShuffledTimes) {
  std::vector<double> nanos(100);
  std::iota(nanos.begin(), nanos.end(), 1);  // 1 .. 100
  std::shuffle(nanos.begin(), nanos.end(), std::mt19937(7));
  const Row row = summarise(nanos, 10, 4, {1, 1});
  EXPECT_DOUBLE_EQ(row.minUs, 0.001);
  EXPECT_DOUBLE_EQ(row.p50Us, 0.051);
  EXPECT_DOUBLE_EQ(row.p99Us, 0.100);
  EXPECT_DOUBLE_EQ(row.maxUs, 0.100);
  EXPECT_EQ(row.iterations, 100u);
  EXPECT_EQ(row.bytes, 40u);
}

TEST(Statistics, BandwidthsAreBytesPerMedianNanosecond) {
  const Row row = summarise({1000, 1000, 1000}, 1000, 4, {2, 0.75});
  EXPECT_EQ(row.totalBytes, 8000u);
  EXPECT_DOUBLE_EQ(row.algorithmGBs, 8);  // 2 x 4000 bytes in 1000 ns
  EXPECT_DOUBLE_EQ(row.busGBs, 6);
}

TEST(Statistics, OneIterationIsEnough) {
  const Row row = summarise({5000}, 1, 4, {1, 1});
  EXPECT_DOUBLE_EQ(row.p50Us, 5);
  EXPECT_DOUBLE_EQ(row.p99Us, 5);
}

}  // namespace
}  // namespace benchmark
