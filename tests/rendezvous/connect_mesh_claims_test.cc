// Ranks whose claims contradict each other: one rank twice, other sizes.
#include <gtest/gtest.h>

#include "gloo/rendezvous/hash_store.h"
#include "tests/rendezvous/mesh_job.h"

namespace gloo_test {

namespace {

using gloo::rendezvous::HashStore;

void expectDuplicate(const MeshRank& rank) {
  EXPECT_TRUE(contains(rank.error, "rank 1 is claimed by two processes"))
      << rank.error;
  EXPECT_TRUE(contains(rank.error, "host 7, pid 70")) << rank.error;
  EXPECT_TRUE(contains(rank.error, "host 8, pid 80")) << rank.error;
  EXPECT_LT(rank.seconds, 3);
}

TEST(ConnectMeshClaimsTest, TwoProcessesOfOneRankAreBothTold) {
  FakeNetwork network;
  HashStore store;
  MeshRank first(network, 1, 3, 7, 70);
  MeshRank second(network, 1, 3, 8, 80);
  runTogether({[&] { first.connect(store, kLong); },
               [&] { second.connect(store, kLong); }});
  expectDuplicate(first);
  expectDuplicate(second);
}

TEST(ConnectMeshClaimsTest, ASecondProcessOfARankThatWaitsIsADuplicate) {
  FakeNetwork network;
  HashStore store;
  MeshRank zero(network, 0, 3);
  MeshRank first(network, 1, 3, 7, 70);
  MeshRank second(network, 1, 3, 8, 80);
  runTogether({[&] { zero.connect(store, kLong); },
               [&] { first.connect(store, kLong); },
               [&] {
                 EXPECT_TRUE(network.waitForConnections(1));
                 second.connect(store, kLong);
               }});
  expectDuplicate(first);
  expectDuplicate(second);
  expectDuplicate(zero);
}

TEST(ConnectMeshClaimsTest, ADuplicateOfARunningJobHarmsOnlyItself) {
  FakeNetwork network;
  HashStore store;
  const auto ranks = runJob(
      network, 2, [&] { return borrow(store); }, kLong);
  expectConnected(ranks);
  MeshRank second(network, 1, 2, 8, 80);
  second.connect(store, kLong);
  EXPECT_TRUE(contains(second.error, "rank 1 is claimed by two processes"));
  EXPECT_LT(second.seconds, 3);
}

TEST(ConnectMeshClaimsTest, AProcessMayReplaceItsOwnEarlierContext) {
  FakeNetwork network;
  HashStore store;
  MeshRank oldZero(network, 0, 2, 7, 70);
  MeshRank oldOne(network, 1, 2, 7, 71);
  runTogether({[&] { oldZero.connect(store, kLong); },
               [&] { oldOne.connect(store, kLong); }});
  MeshRank zero(network, 0, 2, 7, 70);
  MeshRank one(network, 1, 2, 7, 71);
  runTogether({[&] { zero.connect(store, kLong); },
               [&] { one.connect(store, kLong); }});
  EXPECT_EQ(zero.error + one.error, "");
}

TEST(ConnectMeshClaimsTest, TwoThreadsOfOneRankAreADuplicate) {
  FakeNetwork network;
  HashStore store;
  MeshRank first(network, 1, 2, 7, 70);
  MeshRank second(network, 1, 2, 7, 70);
  runTogether({[&] { first.connect(store, kLong); },
               [&] { second.connect(store, kLong); }});
  EXPECT_TRUE(contains(first.error, "claimed by two")) << first.error;
  EXPECT_TRUE(contains(second.error, "claimed by two")) << second.error;
}

TEST(ConnectMeshClaimsTest, DifferentSizesAreNamedOnBothSides) {
  for (const int lateRank : {1, 3}) {  // 3: out of the other's range
    FakeNetwork network;
    HashStore store;
    MeshRank zero(network, 0, 2);
    MeshRank other(network, lateRank, 4);
    runTogether({[&] { zero.connect(store, kLong); },
                 [&] { other.connect(store, kLong); }});
    for (const auto* rank : {&zero, &other}) {
      EXPECT_TRUE(contains(rank->error, "size 2")) << rank->error;
      EXPECT_TRUE(contains(rank->error, "size 4")) << rank->error;
      EXPECT_TRUE(contains(rank->error, "rank 0")) << rank->error;
      EXPECT_TRUE(contains(rank->error, "rank " + std::to_string(lateRank)))
          << rank->error;
      EXPECT_LT(rank->seconds, 3);
    }
  }
}

}  // namespace

}  // namespace gloo_test
