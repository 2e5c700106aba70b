#include "transport/base/tag_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

TEST(TagCountsTest, HoldsWhatAMapWouldHold) {
  TagCounts counts;
  std::map<uint64_t, uint64_t> expected;
  std::mt19937 random(1);
  for (int i = 0; i < 100000; i++) {
    const uint64_t tag = random() % 300;
    const uint64_t found = expected.contains(tag) ? expected[tag] : 0;
    ASSERT_EQ(found, counts.find(tag).value());
    ASSERT_EQ(found, counts.take(tag).value());
    expected.erase(tag);
    if (random() % 4 != 0) {
      expected[tag] = 1 + random() % 2;
      counts.put(tag, expected[tag]);
    }
  }
}

TEST(TagCountsTest, TagsThatAreUsedOnceAndInTurnAreOneEntry) {
  TagCounts counts;
  for (uint64_t tag = 0; tag < 1000000; tag++) {
    counts.put(tag ^ 1, 1);  // not quite in turn
  }
  EXPECT_EQ(1u, counts.entries());
  EXPECT_EQ(1u, counts.take(500000).value());
  EXPECT_EQ(2u, counts.entries());
}

TEST(TagCountsTest, TheLowestThatDoNotFitAreForgottenAndSaidToBe) {
  TagCounts counts(2);
  counts.put(3, 1);
  counts.put(5, 1);
  EXPECT_EQ(0u, counts.take(1).value());
  counts.put(7, 1);
  for (const uint64_t tag : {1, 3}) {
    EXPECT_FALSE(counts.find(tag).has_value()) << tag;
    EXPECT_FALSE(counts.take(tag).has_value()) << tag;
  }
  for (const uint64_t tag : {4, 6, 8, 100}) {
    EXPECT_EQ(0u, counts.take(tag).value()) << tag;
  }
  EXPECT_EQ(2u, counts.entries());
  counts.put(2, 1);
  EXPECT_FALSE(counts.take(2).has_value());
  EXPECT_EQ(1u, counts.take(5).value());
  EXPECT_EQ(1u, counts.take(7).value());
}

TEST(TagCountsTest, WhatIsKnownIsWhatAMapWouldHold) {
  TagCounts counts(20);
  std::map<uint64_t, uint64_t> expected;
  std::mt19937 random(1);
  size_t known = 0;
  for (int i = 0; i < 100000; i++) {
    const uint64_t tag = random() % 300;
    const uint64_t found = expected.contains(tag) ? expected[tag] : 0;
    const auto taken = counts.take(tag);
    ASSERT_TRUE(!taken.has_value() || *taken == found);
    if (taken.has_value()) {
      known++;
      expected[tag] = 1 + random() % 2;
      counts.put(tag, expected[tag]);
    }
    ASSERT_LE(counts.entries(), 20u);
  }
  EXPECT_LT(0u, known);
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
