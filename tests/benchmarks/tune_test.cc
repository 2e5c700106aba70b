#include "benchmarks/benchmark/tune.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "benchmarks/benchmark/tune_direct.h"
#include "benchmarks/benchmark/tune_file.h"

namespace benchmark {
namespace {

Measured at(size_t bytes, double a, double b) {
  return {bytes, {{"a", a}, {"b", b}}};
}

TEST(BestOf, OneWinnerIsOneRow) {
  const auto best = bestOf({at(4, 1, 2), at(16, 1, 2)});
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].bytes, 0u);
  EXPECT_EQ(best[0].algorithm, "a");
}

TEST(BestOf, WinnersChangeWhereTheirTimesCross) {
  // As much quicker at the one size as slower at the other: in the middle.
  const auto best = bestOf({at(100, 1, 2), at(10000, 4, 2)});
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[1].bytes, 1000u);
  EXPECT_EQ(best[1].algorithm, "b");
}

TEST(BestOf, AWinnerKeepsItsPlaceWhereAnotherIsHardlyBetter) {
  EXPECT_EQ(bestOf({at(4, 1, 2), at(16, 1, 0.98), at(64, 1, 2)}).size(), 1u);
}

TEST(BestOf, RowsAscend) {
  const auto best = bestOf({at(4, 1, 2), at(5, 2, 1), at(6, 1, 2)});
  ASSERT_EQ(best.size(), 3u);
  EXPECT_LT(best[0].bytes, best[1].bytes);
  EXPECT_LT(best[1].bytes, best[2].bytes);
}

TEST(Threshold, LiesWhereTheTimesCross) {
  EXPECT_EQ(1000u, thresholdOf({{100, 1, 2}, {10000, 4, 2}}));
  EXPECT_EQ(100u, thresholdOf({{100, 2, 1}, {10000, 4, 2}}));
  EXPECT_EQ(std::nullopt, thresholdOf({{100, 1, 2}, {10000, 2, 2.1}}));
  EXPECT_EQ(std::nullopt, thresholdOf({}));
}

TEST(Threshold, OfAWayThatWinsNowhereIsAboveAllThatWasMeasured) {
  EXPECT_EQ(10001u, measuredThreshold({{100, 1, 2}, {10000, 2, 2.1}}, 0));
  EXPECT_EQ(1000u, measuredThreshold({{100, 1, 2}, {10000, 4, 2}}, 0));
  EXPECT_EQ(std::nullopt, measuredThreshold({}, 0));
}

TEST(Threshold, OfAWayThatWinsNowhereIsNoLowerThanShipped) {
  EXPECT_EQ(32768u, measuredThreshold({{100, 1, 2}, {10000, 2, 2.1}}, 32768));
  EXPECT_EQ(10001u, measuredThreshold({{100, 1, 2}, {10000, 2, 2.1}}, 4096));
  EXPECT_EQ(1000u, measuredThreshold({{100, 1, 2}, {10000, 4, 2}}, 32768));
  EXPECT_EQ(std::nullopt, measuredThreshold({}, 32768));
}

TEST(Threshold, IsNotMovedByOneSizeThatIsOff) {
  EXPECT_EQ(std::nullopt,
            thresholdOf({{1, 1, 2}, {2, 1, 0.9}, {4, 1, 2}, {8, 1, 2}}));
  EXPECT_EQ(1u, thresholdOf({{1, 2, 1}, {2, 2, 1}, {4, 0.9, 1}, {8, 2, 1}}));
}

TEST(TuneFile, WhatIsNoneIsToldSo) {
  Options options;
  options.tuneFile = ::testing::TempDir() + "gloo_tune_test.json";
  for (const char* text :
       {"", "[]", R"({"networks": []})", R"({"version": 2, "networks": []})",
        R"({"version": "1", "networks": []})", R"({"version": 1})",
        R"({"version": 1, "networks": [3]})",
        R"({"version": 1, "networks": [{"transport": "tcp", "ranks": 4,
                                        "best": []}]})",
        R"({"version": 1, "networks": [{"direct": 1}]})",
        R"({"version": 1, "networks": [{"direct": {"most_bytes": []}}]})"}) {
    std::ofstream(options.tuneFile) << text;
    try {
      checkTuneFile(options);
      ADD_FAILURE() << text;
    } catch (const std::runtime_error& e) {
      EXPECT_NE(std::string::npos,
                std::string(e.what()).find("is no tuning file"))
          << e.what();
    }
  }
  std::ofstream(options.tuneFile) << R"({"version": 1, "networks": []})";
  EXPECT_NO_THROW(checkTuneFile(options));
  std::filesystem::remove(options.tuneFile);
}

}  // namespace
}  // namespace benchmark
