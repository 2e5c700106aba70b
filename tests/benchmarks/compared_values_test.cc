// The values by which compare.py's programs check results.
#include "benchmarks/compare/harness/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace {

constexpr size_t kBytes = size_t{1} << 20;
constexpr size_t kIteration = 77;

// One rank alone: its result is its input, whatever the collective.
class ComparedValues : public testing::TestWithParam<const char*> {
 protected:
  ComparedValues()
      : work_(measure::shapeOf(GetParam(), kBytes, 1)),
        data_(work_.outputElements) {
    work_.input = work_.output = data_.data();
    measure::Values(work_, 0, 1).fill(kIteration);
  }

  void check() const { measure::Values(work_, 0, 1).check(kIteration, true); }

  measure::Work work_;
  std::vector<float> data_;
};

TEST_P(ComparedValues, WhatLiesInItsPlaceIsRight) { EXPECT_NO_THROW(check()); }

// As by an algorithm that mixes up its segments.
TEST_P(ComparedValues, PartsThatChangedPlacesAreFound) {
  for (size_t bytes = 64; bytes <= kBytes / 2; bytes *= 2) {
    const auto part = std::ptrdiff_t(bytes / sizeof(float));
    const auto swap = [&] {
      std::swap_ranges(data_.begin(), data_.begin() + part,
                       data_.begin() + part);
    };
    swap();
    EXPECT_THROW(check(), std::runtime_error) << bytes;
    swap();
  }
}

INSTANTIATE_TEST_SUITE_P(All, ComparedValues,
                         testing::Values("allreduce", "reduce", "broadcast",
                                         "allgather", "reduce_scatter",
                                         "alltoall"));

}  // namespace
