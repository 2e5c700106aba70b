// Ranks that find each other, through stores of every kind.
#include <gtest/gtest.h>

#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/hash_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "rendezvous/connect_mesh.h"
#include "rendezvous/liveness.h"
#include "rendezvous/record.h"
#include "rendezvous/socket.h"
#include "tests/rendezvous/mesh_job.h"
#include "tests/rendezvous/store_kinds.h"
#include "tests/rendezvous/temporary_directory.h"
#include "tests/rendezvous/user_stores.h"

namespace gloo_test {

namespace {

using gloo::internal::Profile;
using gloo::rendezvous::HashStore;
using gloo::rendezvous::Record;
using gloo::rendezvous::recordKey;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ConnectMesh : public testing::TestWithParam<StoreKind> {};

TEST_P(ConnectMesh, EverySizeConnects) {
  for (const int size : {1, 2, 3, 16}) {
    const auto fixture = GetParam().make();
    FakeNetwork network;
    const auto ranks = runJob(
        network, size, [&] { return fixture->open(); }, kLong);
    expectConnected(ranks);
    EXPECT_EQ(network.connections(), size * (size - 1) / 2);
  }
}

TEST_P(ConnectMesh, WhatAnEarlierRunLeftIsOverwritten) {
  const auto fixture = GetParam().make();
  FakeNetwork network;
  for (const int size : {4, 4, 3, 6}) {
    expectConnected(runJob(
        network, size, [&] { return fixture->open(); }, kLong));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConnectMesh, testing::ValuesIn(allStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST(ConnectMeshTest, ASingleRankNeedsNoStore) {
  BrokenStore store;
  FakeNetwork network;
  MeshRank rank(network, 0, 1);
  rank.connect(store, kLong);
  EXPECT_EQ(rank.error, "");
  EXPECT_EQ(rank.mesh->profile()->hostOfRank, std::vector<int>{0});
}

TEST(ConnectMeshTest, RanksConnectWhileOthersAreMissing) {
  FakeNetwork network;
  HashStore store;
  MeshRank zero(network, 0, 3);
  MeshRank one(network, 1, 3);
  MeshRank late(network, 2, 3);
  runTogether({[&] { zero.connect(store, kLong); },
               [&] { one.connect(store, kLong); },
               [&] {
                 EXPECT_TRUE(network.waitForConnections(1));
                 late.connect(store, kLong);
               }});
  EXPECT_EQ(zero.error + one.error + late.error, "");
}

TEST(ConnectMeshTest, RanksThatNeverCameAreListedAtTheDeadline) {
  FakeNetwork network;
  HashStore store;
  MeshRank zero(network, 0, 8);
  MeshRank three(network, 3, 8);
  runTogether({[&] { zero.connect(store, milliseconds(300)); },
               [&] { three.connect(store, kLong); }});
  EXPECT_TRUE(contains(zero.error, "Timed out")) << zero.error;
  EXPECT_TRUE(contains(zero.error, "ranks 1-2, 4-7 never published"))
      << zero.error;
  EXPECT_TRUE(contains(zero.error, "hash store")) << zero.error;
  EXPECT_LT(zero.seconds, 1.3);
  // The other need not wait for its own deadline.
  EXPECT_FALSE(three.error.empty());
  EXPECT_LT(three.seconds, 5);
}

TEST(ConnectMeshTest, AStaleAddressIsNamedAtTheDeadline) {
  FakeNetwork network;
  HashStore store;
  expectConnected(runJob(
      network, 3, [&] { return borrow(store); }, kLong));
  MeshRank zero(network, 0, 3);
  MeshRank one(network, 1, 3);
  runTogether({[&] { zero.connect(store, milliseconds(300)); },
               [&] { one.connect(store, milliseconds(300)); }});
  EXPECT_TRUE(contains(zero.error, "rank 2: its address is stale"))
      << zero.error;
  EXPECT_FALSE(one.error.empty());
}

TEST(ConnectMeshTest, ALeftOverRefusalIsIgnored) {
  FakeNetwork network;
  HashStore store;
  MeshRank alone(network, 1, 2);
  alone.connect(store, milliseconds(20));
  ASSERT_TRUE(contains(alone.error, "Timed out"));
  expectConnected(runJob(
      network, 2, [&] { return borrow(store); }, kLong));
}

// A rank that gives up for another one's death says so, and ends: it must not
// be taken for the one that was killed.
class MeshBesideOneThatGivesUp : public FakeMesh {
 public:
  MeshBesideOneThatGivesUp(FakeNetwork& network, HashStore& store,
                           const Record& refusal)
      : FakeMesh(network, 0, 2), store_(store), refusal_(refusal) {}
  bool isGone(const gloo::internal::PeerAddress&) const override {
    store_.set(recordKey(1), encodeRecord(refusal_));
    return true;
  }

 private:
  HashStore& store_;
  const Record refusal_;
};

// Rank 1 of `size` published its address, and has ended.
Record recordOfDeadRank(FakeNetwork& network, int size) {
  FakeMesh other(network, 1, size);
  Record record;
  record.rank = 1;
  record.size = size;
  record.nonce = other.address().nonce;
  record.address = other.address().bytes;
  record.writtenAt = gloo::rendezvous::wallClockMicroseconds();
  return record;
}

TEST(ConnectMeshTest, WhoGivesUpAndEndsIsNotTakenForDead) {
  HashStore store;
  FakeNetwork network;
  const Record record = recordOfDeadRank(network, 2);
  store.set(recordKey(1), encodeRecord(record));
  Record refusal = record;
  refusal.kind = Record::Kind::kRefusal;
  refusal.address.clear();
  const std::string why = "rank 7 died";
  refusal.extra.assign(why.begin(), why.end());
  MeshBesideOneThatGivesUp mesh(network, store, refusal);
  try {
    connectMesh(mesh, store, gloo::Deadline::after(kLong), Profile{});
    ADD_FAILURE() << "connected to nobody";
  } catch (const gloo::RendezvousException& error) {
    EXPECT_EQ(why, error.what());
  }
}

// Everybody is gone, and so is the store, as a TCP store with rank 0.
class StoreThatEnds : public gloo::rendezvous::PrefixStore {
 public:
  explicit StoreThatEnds(HashStore& store) : PrefixStore("", store) {}
  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override {
    if (std::exchange(ended_, true)) {
      throw gloo::rendezvous::TransientError("connection refused");
    }
    return PrefixStore::peek(keys);
  }

 private:
  bool ended_ = false;
};

class MeshOfTheDead : public FakeMesh {
 public:
  using FakeMesh::FakeMesh;
  bool isGone(const gloo::internal::PeerAddress&) const override {
    return true;
  }
};

TEST(ConnectMeshTest, ADeadRankIsNamedThoughTheStoreHasEnded) {
  HashStore store;
  StoreThatEnds ending(store);
  FakeNetwork network;
  const Record record = recordOfDeadRank(network, 3);
  gloo::rendezvous::PrefixStore("", store).set(recordKey(1),
                                               encodeRecord(record));
  MeshOfTheDead mesh(network, 0, 3);
  try {
    connectMesh(mesh, ending, gloo::Deadline::after(kLong), Profile{});
    ADD_FAILURE() << "connected to nobody";
  } catch (const gloo::RendezvousException& error) {
    EXPECT_TRUE(contains(error.what(), "rank 1 died")) << error.what();
  }
}

// Another release's record, garbage, a truncated and an altered one.
std::vector<std::vector<char>> uselessValues() {
  Record record;
  record.rank = 1;
  record.size = 2;
  record.address = bytesOf("no address");
  auto altered = gloo::rendezvous::encodeRecord(record);
  auto truncated = altered;
  auto newer = altered;
  altered.back() ^= 1;
  truncated.resize(20);
  newer[4]++;
  return {bytesOf("garbage garbage garbage garbage garbage"),
          truncated,
          newer,
          altered,
          gloo::rendezvous::encodeRecord(record),
          {}};
}

TEST(ConnectMeshTest, AUselessValueIsNamedAtTheDeadline) {
  for (const auto& value : uselessValues()) {
    FakeNetwork network;
    HashStore store;
    store.set(recordKey(1), value);
    MeshRank zero(network, 0, 2);
    zero.connect(store, milliseconds(50));
    EXPECT_TRUE(contains(zero.error, "rank 1: its record is of no use"))
        << zero.error;
  }
}

TEST(ConnectMeshTest, AUselessValueThatIsReplacedHarmsNobody) {
  for (const auto& value : uselessValues()) {
    FakeNetwork network;
    HashStore store;
    store.set(recordKey(0), value);
    store.set(recordKey(1), value);
    expectConnected(runJob(
        network, 2, [&] { return borrow(store); }, kLong));
  }
}

TEST(ConnectMeshTest, ARecordThatDisappearsIsWrittenAgain) {
  FakeNetwork network;
  TemporaryDirectory directory;
  gloo::rendezvous::FileStore store(directory.path());
  MeshRank zero(network, 0, 2);
  MeshRank one(network, 1, 2);
  runTogether({[&] { zero.connect(store, kLong); },
               [&] {
                 store.wait({recordKey(0)}, kLong);
                 for (const auto& path : store.getAllKeyFilePaths()) {
                   std::filesystem::remove(path);
                 }
                 store.wait({recordKey(0)}, kLong);
                 one.connect(store, kLong);
               }});
  EXPECT_EQ(zero.error + one.error, "");
}

TEST(ConnectMeshTest, RankZerosProfileIsEverybodys) {
  FakeNetwork network;
  HashStore store;
  Profile wanted;
  wanted.forced = "allreduce=ring";
  wanted.segmentBytes = 12345;
  wanted.tuning = "some table";
  MeshRank zero(network, 0, 3, 7);
  MeshRank one(network, 1, 3, 8);
  MeshRank two(network, 2, 3, 7);
  Profile same;
  same.segmentBytes = 12345;
  runTogether({[&] { zero.connect(store, kLong, wanted); },
               [&] { one.connect(store, kLong); },
               [&] { two.connect(store, kLong, same); }});
  for (const auto* rank : {&zero, &one, &two}) {
    ASSERT_EQ(rank->error, "");
    EXPECT_EQ(rank->mesh->profile()->difference(wanted), "");
    EXPECT_EQ(rank->mesh->profile()->hostOfRank, (std::vector<int>{0, 1, 0}));
  }
}

TEST(ConnectMeshTest, ARankWhoseEnvironmentDisagreesIsNamedByAll) {
  FakeNetwork network;
  HashStore store;
  Profile wanted;
  wanted.forced = "allreduce=ring";
  Profile different;
  different.forced = "allreduce=bcube";
  MeshRank zero(network, 0, 3);
  MeshRank one(network, 1, 3);
  // Rank 2 never comes, so that nobody can be complete before.
  runTogether({[&] { zero.connect(store, kLong, wanted); },
               [&] { one.connect(store, kLong, different); }});
  for (const auto* rank : {&zero, &one}) {
    EXPECT_TRUE(contains(rank->error, "rank 1")) << rank->error;
    EXPECT_TRUE(contains(rank->error, "GLOO_ALGORITHM")) << rank->error;
    EXPECT_TRUE(contains(rank->error, "allreduce=bcube")) << rank->error;
    EXPECT_TRUE(contains(rank->error, "allreduce=ring")) << rank->error;
    EXPECT_LT(rank->seconds, 3);
  }
}

TEST(ConnectMeshTest, ABrokenStoreIsAnErrorAtOnce) {
  FakeNetwork network;
  BrokenStore store;
  MeshRank zero(network, 0, 2);
  zero.connect(store, kLong);
  EXPECT_TRUE(contains(zero.error, "the disk is on fire")) << zero.error;
  EXPECT_LT(zero.seconds, 10);
}

TEST(ConnectMeshTest, ATooLargeTuningTableIsTheCallersFault) {
  FakeNetwork network;
  HashStore store;
  Profile wanted;
  wanted.tuning.assign(Record::kMaxExtraBytes + 1, 'x');
  MeshRank zero(network, 0, 2);
  EXPECT_THROW(gloo::rendezvous::connectMesh(
                   *zero.mesh, store, gloo::Deadline::after(kLong), wanted),
               gloo::InvalidOperationException);
}

TEST(ConnectMeshTest, SixtyFourRanksConnectOverAFileStore) {
  TemporaryDirectory directory;
  FakeNetwork network;
  const auto begin = std::chrono::steady_clock::now();
  const auto ranks = runJob(
      network, 64,
      [&] {
        return std::make_shared<gloo::rendezvous::FileStore>(directory.path());
      },
      kLong);
  expectConnected(ranks);
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - begin;
  std::printf("64 ranks, file store, fake mesh: %.2f s\n", spent.count());
  EXPECT_LT(spent.count(), 20);
}

}  // namespace

}  // namespace gloo_test
