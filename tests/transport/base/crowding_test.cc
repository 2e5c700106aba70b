#include "transport/base/crowding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "gloo/barrier.h"
#include "gloo/context.h"
#include "gloo/internal/cores.h"
#include "gloo/rendezvous/context.h"
#include "gloo/transport/shm/device.h"
#include "gloo/types.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::isCrowded;
using transport::base::RankCores;

RankCores on(int first, int last, std::vector<RankCores::Quota> quotas = {},
             int ranks = 0) {
  RankCores rank;
  for (int core = first; core < last; core++) {
    CPU_SET(core, &rank.cores);
  }
  std::copy(quotas.begin(), quotas.end(), rank.quotas.begin());
  rank.ranks = ranks;
  return rank;
}

TEST(Crowding, IsAboutAllCoresThatAnyRankMayRunOn) {
  EXPECT_FALSE(isCrowded({on(0, 2), on(0, 2)}));
  EXPECT_TRUE(isCrowded({on(0, 2), on(0, 2), on(0, 2)}));
  EXPECT_FALSE(isCrowded({on(0, 1), on(1, 2)}));
  EXPECT_TRUE(isCrowded({on(0, 1), on(0, 1)}));
}

TEST(Crowding, CountsTheRanksOfOtherContexts) {
  EXPECT_TRUE(isCrowded({on(0, 2), on(0, 2, {}, 3)}));
  EXPECT_TRUE(isCrowded({on(0, 64, {{1, 3}}, 4), on(0, 64, {{1, 3}}, 4)}));
}

TEST(Crowding, IsAboutTheQuotaOfAContainer) {
  EXPECT_FALSE(isCrowded({on(0, 64, {{1, 2}}), on(0, 64, {{1, 2}})}));
  EXPECT_TRUE(isCrowded({on(0, 64, {{1, 1}}), on(0, 64, {{1, 1}})}));
}

TEST(Crowding, CountsInEachContainerItsOwnRanks) {
  const RankCores one = on(0, 64, {{1, 2}});
  const RankCores two = on(0, 64, {{2, 2}});
  EXPECT_FALSE(isCrowded({one, one, two, two}));
  EXPECT_TRUE(isCrowded({one, one, two, two, two}));
  EXPECT_FALSE(isCrowded({one, one, on(0, 64), on(0, 64)}));
}

TEST(Crowding, CountsContainersInContainers) {
  const RankCores one = on(0, 64, {{1, 2}, {9, 3}});
  const RankCores two = on(0, 64, {{9, 3}});
  EXPECT_FALSE(isCrowded({one, one, two}));
  EXPECT_TRUE(isCrowded({one, one, two, two}));
}

TEST(Crowding, OwnCoresAreThoseOfTheThreadAndItsQuotas) {
  const auto kept = internal::ownCoreQuotas();
  internal::replaceCoreQuotas({{1.5, 11}, {2, 12}, {3, 13}, {4, 14}, {5, 15}});
  const RankCores own = RankCores::own(6);
  internal::replaceCoreQuotas(kept);
  const cpu_set_t cores = internal::allowedCores();
  EXPECT_TRUE(CPU_EQUAL(&cores, &own.cores));
  EXPECT_EQ(6, own.ranks);
  EXPECT_EQ(11u, own.quotas[0].group);
  EXPECT_EQ(1, own.quotas[0].cores);
  EXPECT_EQ(14u, own.quotas[3].group);
}

// What rank 0 says of them all.
void expectCrowded(bool expected, const std::function<void(int)>& enter) {
  spawnSeats(Mode::kProcesses, 2, [&](Seat& seat) {
    enter(seat.rank);
    auto context = std::make_shared<rendezvous::Context>(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    auto device = transport::shm::CreateDevice();
    context->connectFullMesh(seat.store, device);
    EXPECT_EQ(expected, laneOf(context, kBarrierSlotPrefix, 0).crowded())
        << "rank " << seat.rank;
    barrier(BarrierOptions(context));
  });
}

TEST(Crowding, IsTheSameOnRanksOfDifferentContainers) {
  const auto quota = [](double cores, uint64_t group) {
    internal::replaceCoreQuotas({{cores, group}});
  };
  expectCrowded(true, [&](int) { quota(1.9, 5); });
  // Each of these would think so alone.
  const cpu_set_t cores = internal::allowedCores();
  const bool few = CPU_COUNT(&cores) < 2;
  expectCrowded(few, [&](int rank) { quota(1, 5 + uint64_t(rank)); });
  expectCrowded(few, [&](int rank) {
    rank == 1 ? quota(1, 5) : internal::replaceCoreQuotas({});
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
