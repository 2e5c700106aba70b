// Threads of several ranks that claim lanes at once.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/transport/base/claiming_ranks.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

// As enter(), but may leave before it goes on, a few times: a rank decides that
// for itself.
int enterWavering(LaneClaims& rank, uint64_t tag, std::mt19937& own) {
  for (;;) {
    int lane = -1;
    const LaneClaims::Outcome outcome = rank.enter(tag, kClaimTimeout, &lane);
    if (outcome != LaneClaims::Outcome::kLane) {
      EXPECT_EQ(outcome, LaneClaims::Outcome::kLinks);
      return -1;
    }
    if (own() % 8 != 0) {
      rank.goOn(lane);
      return lane;
    }
    rank.leave(lane);
  }
}

// Threads of several ranks come to the operations of many tags in orders of
// their own. An operation may wait for all ranks, or, as a broadcast does at
// its root, for none.
class LaneClaimsRaceTest : public ::testing::TestWithParam<int> {};

struct Instance {
  std::atomic<int> decided{0};  // lane + 2; 0: not yet
  std::atomic<int> there{0};
};

TEST_P(LaneClaimsRaceTest, AllDecideAlike) {
  constexpr int kThreads = 3;
  constexpr int kTags = 7;  // of each thread
  constexpr int kOperations = 20000;
  ClaimingRanks ranks(GetParam());
  std::vector<Instance> instances(kThreads * kOperations);
  std::array<std::atomic<int>, LaneClaims::kLanes> users{};
  std::atomic<int> inLanes{0};
  const auto run = [&](int rank, int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));  // alike on all ranks
    std::mt19937 own(static_cast<unsigned>(100 * rank + thread));
    for (int i = 0; i < kOperations; i++) {
      const auto r = random();
      const int tag = thread * 100 + static_cast<int>(r % kTags);
      Instance& instance =
          instances[static_cast<size_t>(thread * kOperations + i)];
      const int lane =
          enterWavering(ranks[rank], static_cast<uint64_t>(tag), own);
      int decided = 0;
      if (!instance.decided.compare_exchange_strong(decided, lane + 2)) {
        EXPECT_EQ(decided, lane + 2) << "tag " << tag << ", operation " << i;
      }
      if (lane >= 0) {
        inLanes++;
        // Nobody is there for another tag.
        std::atomic<int>& user = users[static_cast<size_t>(lane)];
        const int before = user;
        EXPECT_TRUE(before == 0 || before == tag + 1);
        user = tag + 1;
        instance.there++;
        while ((r >> 20) % 2 == 0 && instance.there < ranks.size()) {
          std::this_thread::yield();
        }
        if (instance.there == ranks.size()) {
          user = 0;
        }
      }
      leave(ranks[rank], lane);
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks.size(); rank++) {
    for (int thread = 0; thread < kThreads; thread++) {
      threads.emplace_back(run, rank, thread);
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GT(inLanes, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, LaneClaimsRaceTest, ::testing::Values(2, 3, 8));

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
