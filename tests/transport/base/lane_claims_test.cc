// All ranks decide alike which operations have a lane. Ranks are threads here,
// on memory of their own.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <ctime>
#include <random>
#include <thread>
#include <vector>

#include "tests/transport/base/claiming_ranks.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using Outcome = LaneClaims::Outcome;
using std::chrono::milliseconds;

using Lanes = std::array<int, LaneClaims::kLanes>;

// Two ranks, with a tag for each lane.
Lanes enterAll(ClaimingRanks& ranks) {
  Lanes lanes{};
  for (uint64_t tag = 0; tag < lanes.size(); tag++) {
    lanes[tag] = enter(ranks[0], tag);
    EXPECT_EQ(enter(ranks[1], tag), lanes[tag]);
  }
  return lanes;
}

void leaveAll(ClaimingRanks& ranks, const Lanes& lanes) {
  for (const int lane : lanes) {
    leave(ranks[0], lane);
    leave(ranks[1], lane);
  }
}

TEST(LaneClaimsTest, EverNewTagsHaveLanes) {
  ClaimingRanks ranks(3);
  for (uint64_t tag = 0; tag < 1000; tag++) {
    const int lane = enter(ranks[static_cast<int>(tag % 3)], tag);
    EXPECT_GE(lane, 0) << tag;
    EXPECT_EQ(enter(ranks[static_cast<int>((tag + 1) % 3)], tag), lane);
    leave(ranks[static_cast<int>(tag % 3)], lane);
    EXPECT_EQ(enter(ranks[static_cast<int>((tag + 2) % 3)], tag), lane);
    leave(ranks[static_cast<int>((tag + 1) % 3)], lane);
    leave(ranks[static_cast<int>((tag + 2) % 3)], lane);
  }
}

TEST(LaneClaimsTest, ALaneIsKeptUntilAllHaveBeenThere) {
  ClaimingRanks ranks(2);
  // Rank 0 is through with as many operations as there are lanes, as the root
  // of a broadcast may be.
  for (uint64_t tag = 0; tag < LaneClaims::kLanes; tag++) {
    const int lane = enter(ranks[0], tag);
    EXPECT_GE(lane, 0);
    leave(ranks[0], lane);
  }
  EXPECT_EQ(enter(ranks[0], 99), -1);
  // Rank 1 comes when there are idle lanes: what was decided holds.
  for (uint64_t tag = 0; tag < LaneClaims::kLanes; tag++) {
    const int lane = enter(ranks[1], tag);
    EXPECT_GE(lane, 0);
    leave(ranks[1], lane);
  }
  EXPECT_EQ(enter(ranks[1], 99), -1);
  // And is forgotten then.
  EXPECT_GE(enter(ranks[1], 99), 0);
  EXPECT_GE(enter(ranks[0], 99), 0);
}

TEST(LaneClaimsTest, OneTagMayBeRefusedManyTimes) {
  ClaimingRanks ranks(2);
  for (uint64_t tag = 0; tag < LaneClaims::kLanes; tag++) {
    EXPECT_GE(enter(ranks[1], tag), 0);
  }
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(enter(ranks[0], 99), -1);
  }
  for (uint64_t tag = 0; tag < LaneClaims::kLanes; tag++) {
    const int lane = enter(ranks[0], tag);
    leave(ranks[0], lane);
    leave(ranks[1], lane);
  }
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(enter(ranks[1], 99), -1) << i;
  }
  EXPECT_GE(enter(ranks[1], 99), 0);
}

TEST(LaneClaimsTest, ARankMayBeFarAhead) {
  ClaimingRanks ranks(2);
  constexpr uint64_t kMany = 1000;
  for (uint64_t tag = 0; tag < kMany; tag++) {
    const int lane = enter(ranks[0], tag);
    EXPECT_EQ(lane >= 0, tag < LaneClaims::kLanes);
    leave(ranks[0], lane);
  }
  for (uint64_t tag = kMany; tag-- > 0;) {
    const int lane = enter(ranks[1], tag);
    EXPECT_EQ(lane >= 0, tag < LaneClaims::kLanes) << tag;
    leave(ranks[1], lane);
  }
  EXPECT_GE(enter(ranks[1], kMany), 0);
}

TEST(LaneClaimsTest, RefusalsEndWhenAllHaveMetTheSameOnes) {
  ClaimingRanks ranks(2);
  const auto lanes = enterAll(ranks);
  EXPECT_EQ(enter(ranks[0], 50), -1);
  leaveAll(ranks, lanes);
  // As many, but not the same.
  EXPECT_EQ(enter(ranks[1], 60), -1);
  EXPECT_EQ(enter(ranks[1], 50), -1);
  EXPECT_EQ(enter(ranks[0], 60), -1);
  EXPECT_GE(enter(ranks[0], 70), 0);
}

TEST(LaneClaimsTest, ATagInUseIsKnown) {
  ClaimingRanks ranks(2);
  int lane = enter(ranks[0], 7);
  EXPECT_EQ(ranks[0].enter(7, kClaimTimeout, &lane), Outcome::kInUse);
  EXPECT_EQ(enter(ranks[1], 7), lane);
}

TEST(LaneClaimsTest, WhoLeavesWithoutGoingOnHasNotBeenThere) {
  ClaimingRanks ranks(2);
  for (int rank : {0, 1}) {
    leave(ranks[rank], enter(ranks[rank], 5));
  }
  int lane = -1;
  ASSERT_EQ(ranks[0].enter(5, kClaimTimeout, &lane), Outcome::kLane);
  EXPECT_NE(ranks.count(lane, 0), ranks.count(lane, 1));
  ranks[0].leave(lane);
  EXPECT_EQ(ranks.count(lane, 0), ranks.count(lane, 1));
  EXPECT_EQ(enter(ranks[0], 5), lane);
}

// Of a tag's operation that asks it is not known yet.
TEST(LaneClaimsTest, WhetherATagHasGoneOnIsKnownOnceItHasAsked) {
  ClaimingRanks ranks(2);
  EXPECT_FALSE(ranks[0].hasGoneOn(5));
  const int lane = enter(ranks[0], 5);
  EXPECT_TRUE(ranks[0].hasGoneOn(5));
  EXPECT_FALSE(ranks[0].hasGoneOn(6));
  EXPECT_FALSE(ranks[1].hasGoneOn(5));
  leave(ranks[0], lane);
  EXPECT_FALSE(ranks[0].hasGoneOn(5));
  for (const bool goesOn : {false, true}) {
    int entered = -1;
    ASSERT_EQ(ranks[0].enter(6, kClaimTimeout, &entered), Outcome::kLane);
    EXPECT_FALSE(ranks[0].hasGoneOn(5));
    std::atomic<bool> known{false};
    std::thread looking([&] {
      EXPECT_EQ(ranks[0].hasGoneOn(6), goesOn);
      known = true;
    });
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_FALSE(known);
    if (goesOn) {
      ranks[0].goOn(entered);
    } else {
      ranks[0].leave(entered);
    }
    looking.join();
  }
}

TEST(LaneClaimsTest, WhatIsTakenBackWasNotOverTheLinks) {
  ClaimingRanks ranks(2);
  const auto lanes = enterAll(ranks);
  EXPECT_EQ(enter(ranks[0], 50), -1);
  EXPECT_EQ(enter(ranks[0], 60), -1);
  leaveAll(ranks, lanes);
  EXPECT_EQ(enter(ranks[1], 50), -1);
  int culprit = -1;
  EXPECT_EQ(ranks[0].takeBack(60, kClaimTimeout, &culprit), Outcome::kLinks);
  const int lane = enter(ranks[0], 60);
  EXPECT_GE(lane, 0);
  EXPECT_EQ(enter(ranks[1], 60), lane);
  ranks.owner() = 2;
  EXPECT_EQ(ranks[0].takeBack(60, milliseconds(10), &culprit),
            Outcome::kTimeout);
  EXPECT_EQ(culprit, 1);
}

TEST(LaneClaimsTest, NobodyWaitsForWhoeverIsStopped) {
  ClaimingRanks ranks(2);
  ranks.owner() = 2;
  int lane = -1;
  int culprit = -1;
  EXPECT_EQ(ranks[0].enter(1, milliseconds(30), &lane, &culprit),
            Outcome::kTimeout);
  EXPECT_EQ(culprit, 1);
  ranks.owner() = 12345;  // not a rank
  EXPECT_EQ(ranks[0].enter(1, milliseconds(30), &lane, &culprit),
            Outcome::kTimeout);
  EXPECT_EQ(culprit, -1);
  ranks.fail();
  EXPECT_EQ(ranks[0].enter(1, kClaimTimeout, &lane), Outcome::kFailed);
}

TEST(LaneClaimsTest, WhoWaitsForSomebodyStoppedUsesNoCore) {
  ClaimingRanks ranks(2);
  ranks.owner() = 2;
  int lane = -1;
  const auto used = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return milliseconds(time.tv_sec * 1000 + time.tv_nsec / 1000000);
  };
  const auto before = used();
  EXPECT_EQ(ranks[0].enter(1, milliseconds(1000), &lane), Outcome::kTimeout);
  EXPECT_LT(used() - before, milliseconds(500));
}

// A thread of the own rank is stopped between two instructions: it is waited
// for as long as was asked, and the lock is others' meanwhile.
TEST(LaneClaimsTest, NobodyElseWaitsForAThreadOfThisRank) {
  ClaimingRanks ranks(2);
  for (int rank : {0, 1}) {
    leave(ranks[rank], enter(ranks[rank], 5));
  }
  const int known = enter(ranks[1], 5);
  ranks.count(known)++;
  std::thread waiting([&] {
    int lane = -1;
    int culprit = -1;
    EXPECT_EQ(ranks[0].enter(5, milliseconds(300), &lane, &culprit),
              Outcome::kTimeout);
    EXPECT_EQ(culprit, 0);
  });
  for (uint64_t tag = 100; tag < 200; tag++) {
    const int lane = enter(ranks[0], tag);
    EXPECT_GE(lane, 0);
    EXPECT_EQ(enter(ranks[1], tag), lane);
    leave(ranks[0], lane);
    leave(ranks[1], lane);
  }
  waiting.join();
}

// A broken peer writes anything there: no lane is entered but those there are,
// and nobody waits for longer than was asked.
TEST(LaneClaimsTest, GarbageLeadsToNoOtherLanes) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 300; turn++) {
    ClaimingRanks ranks(3);
    for (int i = 0; i < 10; i++) {
      ranks.scribble(random);
      ranks.owner() = i % 5 == 4 ? static_cast<uint32_t>(random()) : 0;
      int lane = -1;
      int culprit = -1;
      const Outcome outcome =
          ranks[0].enter(random() % 5, milliseconds(1), &lane, &culprit);
      if (outcome == Outcome::kLane) {
        ASSERT_TRUE(lane >= 0 && lane < LaneClaims::kLanes) << lane;
        (void)ranks[0].works(lane, 1);
        ranks[0].leave(lane);
      }
      ASSERT_TRUE(culprit >= -1 && culprit < 3) << culprit;
    }
  }
}

// Whatever a broken peer writes there of a rank, that one has not two threads
// in one lane.
TEST(LaneClaimsTest, ALaneInUseIsNotEnteredAgain) {
  ClaimingRanks ranks(2);
  const int lane = enter(ranks[0], 5);
  int other = -1;
  ranks.makeIdle(lane);
  EXPECT_EQ(ranks[0].enter(5, kClaimTimeout, &other), Outcome::kOverwritten);
  for (uint64_t tag = 100; tag < 99 + LaneClaims::kLanes; tag++) {
    EXPECT_GE(enter(ranks[0], tag), 0);
  }
  ranks.makeIdle(lane);
  EXPECT_EQ(ranks[0].enter(6, kClaimTimeout, &other), Outcome::kOverwritten);
  ranks[0].leave(lane);
  ranks.makeIdle(lane);
  EXPECT_EQ(enter(ranks[0], 7), lane);
}

TEST(LaneClaimsTest, NobodyEntersAfterAFailure) {
  ClaimingRanks ranks(3);
  const int lane = enter(ranks[0], 5);
  EXPECT_EQ(enter(ranks[1], 5), lane);
  ranks[0].close();
  int other = -1;
  const milliseconds soon{1};
  EXPECT_EQ(ranks[2].enter(5, soon, &other), Outcome::kFailed);
  EXPECT_EQ(ranks[2].enter(6, soon, &other), Outcome::kFailed);
  leave(ranks[1], lane);
  EXPECT_EQ(ranks[1].enter(5, soon, &other), Outcome::kFailed);
  // Who hears of the failure by this first waits until it knows why.
  std::atomic<bool> told{false};
  std::thread next([&] {
    EXPECT_EQ(ranks[2].enter(5, kClaimTimeout, &other), Outcome::kFailed);
    EXPECT_TRUE(told);
  });
  std::this_thread::yield();
  told = true;
  ranks.fail();
  next.join();
}

TEST(LaneClaimsTest, WhoMayStillWorkIsKnown) {
  ClaimingRanks ranks(4);
  // Rank 2 has left it, rank 3 was never there.
  const int lane = enter(ranks[0], 5);
  EXPECT_EQ(enter(ranks[1], 5), lane);
  leave(ranks[2], enter(ranks[2], 5));
  ranks[0].close();
  EXPECT_TRUE(ranks[0].works(lane, 1));
  EXPECT_FALSE(ranks[0].works(lane, 2));
  EXPECT_FALSE(ranks[0].works(lane, 3));
  EXPECT_TRUE(ranks[1].works(lane, 0));
  ranks[0].stop(lane);
  EXPECT_FALSE(ranks[1].works(lane, 0));
  leave(ranks[1], lane);
  EXPECT_FALSE(ranks[0].works(lane, 1));
}

// A thread that knew the lane by another tag makes the count odd for a moment,
// until it sees that the lane is not that tag's any more.
TEST(LaneClaimsTest, AnotherThreadThatGivesWayIsNoOperationOfTheTag) {
  ClaimingRanks ranks(1);
  const int lane = enter(ranks[0], 5);
  ASSERT_GE(lane, 0);
  leave(ranks[0], lane);
  ASSERT_EQ(ranks.count(lane).fetch_add(1) % 2, 0U);
  std::atomic<bool> over{false};
  Outcome outcome = Outcome::kFailed;
  std::thread next([&] {
    int entered = -1;
    outcome = ranks[0].enter(5, kClaimTimeout, &entered);
    EXPECT_EQ(entered, lane);
    over = true;
  });
  while (!over && ranks.owner() == 0) {
    std::this_thread::yield();
  }
  ranks.count(lane).fetch_sub(1);
  next.join();
  EXPECT_EQ(outcome, Outcome::kLane);
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
