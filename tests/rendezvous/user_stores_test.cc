// Ranks that find each other through stores as callers write them.
#include <gtest/gtest.h>

#include <memory>

#include "rendezvous/connect_mesh.h"
#include "rendezvous/record.h"
#include "tests/rendezvous/mesh_job.h"
#include "tests/rendezvous/user_stores.h"

namespace gloo_test {

namespace {

using gloo::rendezvous::Record;
using std::chrono::milliseconds;

template <typename UserStore>
class ConnectMeshByUserStore : public testing::Test {};
using UserStores =
    testing::Types<PlainStore, TimedStore, UnforgettingStore, V2Store>;
TYPED_TEST_SUITE(ConnectMeshByUserStore, UserStores);

TYPED_TEST(ConnectMeshByUserStore, EverySizeConnects) {
  for (const int size : {1, 2, 3, 16}) {
    UserMap map;
    FakeNetwork network;
    expectConnected(runJob(
        network, size, [&] { return std::make_shared<TypeParam>(map); },
        kLong));
    EXPECT_EQ(map.sets, size == 1 ? 0 : size);
  }
}

TYPED_TEST(ConnectMeshByUserStore, WhatAnEarlierRunLeftIsOverwritten) {
  UserMap map;
  FakeNetwork network;
  for (const int size : {4, 4, 3, 6}) {
    expectConnected(runJob(
        network, size, [&] { return std::make_shared<TypeParam>(map); },
        kLong));
  }
}

// All who are there connect to each other, and to who comes later, though the
// store is in use until then.
TEST(ConnectMeshTest, AStoreThatRemembersWaitsIsAskedForEachRankOnce) {
  for (const int late : {1, 2}) {
    UserMap map;
    FakeNetwork network;
    std::vector<std::unique_ptr<MeshRank>> ranks;
    std::vector<std::function<void()>> calls;
    for (int rank = 0; rank < 3; rank++) {
      ranks.push_back(std::make_unique<MeshRank>(network, rank, 3));
      calls.emplace_back([&map, &rank = *ranks.back(), isLate = rank == late] {
        if (isLate) {
          std::this_thread::sleep_for(milliseconds(550));
        }
        UnforgettingStore store(map);
        rank.connect(store, kLong);
      });
    }
    runTogether(calls);
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank->error, "");
      EXPECT_LT(rank->seconds, 5);
    }
  }
}

TEST(ConnectMeshTest, AStoreThatIsAskedInTurnNamesTheFirstWhoNeverCame) {
  UserMap map;
  FakeNetwork network;
  MeshRank zero(network, 0, 4);
  MeshRank two(network, 2, 4);
  const auto connect = [&map](MeshRank& rank) {
    UnforgettingStore store(map);
    rank.connect(store, milliseconds(300));
  };
  runTogether({[&] { connect(zero); }, [&] { connect(two); }});
  EXPECT_TRUE(contains(zero.error, "Timed out")) << zero.error;
  EXPECT_TRUE(contains(zero.error, "rank 1 never published")) << zero.error;
  EXPECT_TRUE(contains(zero.error, "not asked for those behind")) << zero.error;
  EXPECT_LT(zero.seconds, 1.3);
}

// Its store takes the time that is left, and has to add it to that of now.
TEST(ConnectMeshTest, AUsersStoreWaitsForARankThatIsLateWithoutALimit) {
  UserMap map;
  FakeNetwork network;
  MeshRank zero(network, 0, 2);
  MeshRank one(network, 1, 2);
  const auto connect = [&map](MeshRank& rank, milliseconds timeout) {
    TimedStore store(map);
    rank.connect(store, timeout);
  };
  runTogether({[&] { connect(zero, gloo::kNoTimeout); },
               [&] {
                 std::this_thread::sleep_for(milliseconds(500));
                 connect(one, kLong);
               }});
  EXPECT_EQ(zero.error, "");
  EXPECT_EQ(one.error, "");
}

void expectAllToldOfTheCount(const std::vector<MeshRank>& ranks) {
  for (const auto& rank : ranks) {
    EXPECT_TRUE(contains(rank.error, "the store returned ")) << rank.error;
    EXPECT_LT(rank.seconds, 2);
  }
}

TEST(ConnectMeshTest, AMultiGetOfAnotherNumberOfValuesIsAnErrorAtOnce) {
  for (const size_t surplus : {0, 1}) {
    UserMap map;
    FakeNetwork network;
    expectAllToldOfTheCount(runJob(
        network, 3,
        [&] { return std::make_shared<MiscountingV2Store>(map, surplus); },
        std::chrono::seconds(3)));
  }
}

TEST(ConnectMeshTest, APeekOfAnotherNumberOfValuesIsAnErrorAtOnce) {
  for (const size_t surplus : {0, 1}) {
    for (const int right : {0, 2}) {  // the first looks; those of the reader
      FakeNetwork network;
      const auto store = std::make_shared<MiscountingPeekStore>(surplus, right);
      expectAllToldOfTheCount(runJob(
          network, 2, [&] { return store; }, std::chrono::seconds(3)));
    }
  }
}

TEST(ConnectMeshTest, ARankWritesOneSmallRecordAndReadsInBatches) {
  constexpr int kSize = 32;
  UserMap map;
  FakeNetwork network;
  expectConnected(runJob(
      network, kSize, [&] { return std::make_shared<V2Store>(map); }, kLong));
  EXPECT_EQ(map.sets, kSize);
  EXPECT_LE(map.bytesWritten, size_t{kSize} * (192 + Record::kHeaderBytes));
  // One wait, one multi_get (which waits), one look at the own record (wait
  // and get), and for the slow ones some looks again; not one for each rank.
  EXPECT_LT(map.calls, kSize * kSize / 2);
}

// As a store that counts a key whose value is none.
class StoreThatFindsNothing : public gloo::rendezvous::PeekableStore {
 public:
  void set(const std::string&, const std::vector<char>&) override {}
  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override {
    return std::vector<std::optional<std::vector<char>>>(keys.size());
  }
  bool wait_any(const std::vector<std::string>&, gloo::Deadline) override {
    return true;
  }
  std::string str() const override { return "store that finds nothing"; }
};

TEST(PeekableStoreTest, AWaitEndsThoughTheStoreSaysThatThereIsSomething) {
  StoreThatFindsNothing store;
  EXPECT_THROW(store.wait({"k"}, milliseconds(50)), gloo::TimeoutException);
}

TEST(PeekableStoreTest, APeekOfAnotherNumberOfValuesIsAnError) {
  for (const size_t surplus : {0, 1}) {
    MiscountingPeekStore store(surplus, 0);
    store.set("k", {'v'});
    EXPECT_THROW(store.get("k"), gloo::IoException);
    EXPECT_THROW(store.multi_get({"k", "l"}), gloo::IoException);
  }
}

// Keys come in order, one whenever what is waited for is not there yet.
class StoreThatFillsInOrder : public gloo::rendezvous::HashStore {
 public:
  std::vector<std::optional<std::vector<char>>> peek(
      const std::vector<std::string>& keys) override {
    looked += keys.size();
    return HashStore::peek(keys);
  }
  bool wait_any(const std::vector<std::string>& keys,
                gloo::Deadline /*deadline*/) override {
    while (!HashStore::wait_any(keys, gloo::Deadline::after(milliseconds(1)))) {
      set(keyOf(next_++), {'v'});
    }
    return true;
  }
  static std::string keyOf(int i) { return "k" + std::to_string(i); }

  size_t looked = 0;

 private:
  int next_ = 0;
};

TEST(PeekableStoreTest, KeysThatComeInOrderAreLookedAtTwice) {
  StoreThatFillsInOrder store;
  std::vector<std::string> keys;
  for (int i = 0; i < 100; i++) {
    keys.push_back(StoreThatFillsInOrder::keyOf(i));
  }
  store.wait(keys, kLong);
  EXPECT_LE(store.looked, 2 * keys.size());
}

}  // namespace

}  // namespace gloo_test
