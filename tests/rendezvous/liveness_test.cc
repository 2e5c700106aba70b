// What is of this run, and what an earlier one left.
#include "rendezvous/liveness.h"

#include <gtest/gtest.h>

#include "rendezvous/record.h"
#include "tests/rendezvous/child_process.h"
#include "tests/rendezvous/mesh_job.h"

namespace gloo_test {

namespace {

using gloo::rendezvous::HashStore;
using gloo::rendezvous::isOfThisRun;
using gloo::rendezvous::Record;
using gloo::rendezvous::recordKey;
using gloo::rendezvous::wallClockMicroseconds;
using std::chrono::milliseconds;

// A run that follows another at once begins in the clock tick in which the
// other one wrote.
TEST(LivenessTest, WhatWasWrittenJustBeforeAProcessBeganIsOfAnEarlierRun) {
  for (int i = 0; i < 20; i++) {
    const uint64_t before = wallClockMicroseconds();
    ChildProcess child([before] {
      const uint64_t after = wallClockMicroseconds();
      return (isOfThisRun(before) ? 1 : 0) + (isOfThisRun(after) ? 0 : 2);
    });
    ASSERT_EQ(child.wait(), 0);
  }
}

const std::string kWhy = "rank 2 is claimed by two processes";

// What `writer`, which has ended, left when it gave up.
void leaveRefusal(HashStore& store, FakeMesh&& writer, uint64_t writtenAt) {
  Record refusal;
  refusal.kind = Record::Kind::kRefusal;
  refusal.rank = writer.address().rank;
  refusal.size = writer.address().size;
  refusal.nonce = writer.address().nonce;
  refusal.address = writer.address().bytes;
  refusal.extra.assign(kWhy.begin(), kWhy.end());
  refusal.writtenAt = writtenAt;
  store.set(recordKey(refusal.rank), gloo::rendezvous::encodeRecord(refusal));
}

// Its process began after that.
TEST(LivenessTest, WhoBeginsSoonAfterTheOthersHaveGivenUpIsToldWhy) {
  FakeNetwork network;
  HashStore store;
  leaveRefusal(store, FakeMesh(network, 1, 3),
               wallClockMicroseconds() - 5'000'000);
  MeshRank late(network, 0, 3);
  late.connect(store, milliseconds(3000));
  EXPECT_TRUE(contains(late.error, kWhy)) << late.error;
  EXPECT_FALSE(contains(late.error, "Timed out")) << late.error;
}

class ComingLateTest : public ::testing::TestWithParam<int> {
 protected:
  // Another run, which follows at once: whoever gave up comes again, and the
  // other one has waited for it.
  void expectConnectedWithWhoComesAgain(milliseconds timeout) {
    constexpr int kSize = 2;
    leaveRefusal(store_, FakeMesh(network_, GetParam(), kSize),
                 wallClockMicroseconds() - 5'000'000);
    MeshRank first(network_, 1 - GetParam(), kSize);
    MeshRank again(network_, GetParam(), kSize);
    runTogether({[&] { first.connect(store_, timeout); },
                 [&] {
                   std::this_thread::sleep_for(milliseconds(300));
                   again.connect(store_, kLong);
                 }});
    EXPECT_EQ(first.error, "");
    EXPECT_EQ(again.error, "");
  }

  FakeNetwork network_;
  HashStore store_;
};

TEST_P(ComingLateTest, WhoComesWhenTheOthersHaveGivenUpIsToldWhy) {
  leaveRefusal(store_, FakeMesh(network_, GetParam(), 3),
               wallClockMicroseconds());
  MeshRank late(network_, 0, 3);
  late.connect(store_, kLong);
  EXPECT_EQ(late.error, kWhy);
  EXPECT_LT(late.seconds, 3);
}

TEST_P(ComingLateTest, WhoGaveUpLatelyMayComeAgain) {
  expectConnectedWithWhoComesAgain(kLong);
}

TEST_P(ComingLateTest, WhoWaitsWithoutALimitWaitsForThemToo) {
  expectConnectedWithWhoComesAgain(gloo::kNoTimeout);
}

TEST_P(ComingLateTest, AnEarlierRunsRefusalIsNoReason) {
  leaveRefusal(store_, FakeMesh(network_, GetParam(), 3), 1);
  MeshRank rank(network_, 0, 3);
  rank.connect(store_, milliseconds(50));
  EXPECT_TRUE(contains(rank.error, "Timed out")) << rank.error;
}

TEST_P(ComingLateTest, TheClockOfAnotherHostDoesNotCount) {
  leaveRefusal(store_, FakeMesh(network_, GetParam(), 3, 2),
               wallClockMicroseconds());
  MeshRank rank(network_, 0, 3);
  rank.connect(store_, milliseconds(50));
  EXPECT_TRUE(contains(rank.error, "Timed out")) << rank.error;
}

INSTANTIATE_TEST_SUITE_P(OwnAndOther, ComingLateTest, ::testing::Values(0, 1));

}  // namespace

}  // namespace gloo_test
