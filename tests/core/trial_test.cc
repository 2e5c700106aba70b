// Which of two ways is taken when, and what is known once both were tried.
#include "gloo/internal/trial.h"

#include <gtest/gtest.h>

#include <string>

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

using Small = Trial<3, 1, 9>;

// Of so many calls, which take 20 the first way and 10 the second one, if they
// are timed: the ways, in lower case those that are.
template <typename T>
std::string ways(T& trial, int calls) {
  std::string all;
  for (int i = 0; i < calls; i++) {
    const bool second = trial.goesSecond();
    all += trial.isTimed() ? (second ? 'b' : 'a') : (second ? 'B' : 'A');
    trial.next(trial.isTimed() ? (second ? 10 : 20) : 0);
  }
  return all;
}

TEST(TrialTest, BothWaysAreTriedThenTheChosenOneIsTaken) {
  Small trial;
  EXPECT_EQ(ways(trial, 6), "AaaBbb");
  EXPECT_TRUE(trial.isOver());
  EXPECT_EQ(trial.least()[0], 20);
  EXPECT_EQ(trial.least()[1], 10);
  trial.choose(true);
  EXPECT_EQ(ways(trial, 3 + 9), "BBBAaaBbbBBB");
}

TEST(TrialTest, WithoutAChoiceItGoesOnAsBefore) {
  Small first;
  Small second(true);
  EXPECT_EQ(ways(first, 9), "AaaBbbAAA");
  EXPECT_EQ(ways(second, 9), "AaaBbbBBB");
}

TEST(TrialTest, TheLeastOfEachCounts) {
  Small trial;
  for (const double time : {1, 7, 5, 1, 4, 6}) {
    trial.next(trial.isTimed() ? time : 0);
  }
  EXPECT_EQ(trial.least()[0], 5);
  EXPECT_EQ(trial.least()[1], 4);
}

TEST(TrialTest, WhatWasNotTimedIsNotKnown) {
  Small trial;
  for (int i = 0; i < 6; i++) {
    trial.next(i < 3 ? 2 : 0);
  }
  EXPECT_EQ(trial.least()[0], 2);
  EXPECT_EQ(trial.least()[1], 0);
  trial.beginAgain();
  EXPECT_EQ(trial.least()[0], 0);
  EXPECT_EQ(ways(trial, 6), "AaaBbb");
}

TEST(TrialTest, ANewPeriodKnowsNothingOfTheLastOne) {
  Small trial;
  ways(trial, 9);
  for (int i = 0; i < 6; i++) {
    trial.next(30);
  }
  EXPECT_EQ(trial.least()[0], 30);
  EXPECT_EQ(trial.least()[1], 30);
}

}  // namespace
}  // namespace internal
GLOO_NAMESPACE_END
