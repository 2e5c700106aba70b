// What is in the ranks' ordinary memory is read there, by all or by nobody, and
// where that takes less time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/algorithms/offers.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::offers {
namespace {

// Of an alltoall of 3 ranks, of which the others have offered `said` and then
// vote so. Their memory holds 7 everywhere, and their slots nothing.
struct ReadCall : Call {
  ReadCall() : Call(3, Collective::kAlltoall) {
    parameters.readBytes = DirectParameters::kLeastInPlace;
    lane->own = {};
    lane->mayRead = true;
  }
  Offered offered(uint32_t readNs = 0, uint32_t slotsNs = 0) const {
    return {{Place::kOrdinary, reinterpret_cast<uintptr_t>(theirs.data())},
            {},
            uint64_t{slotsNs} << 32 | readNs};
  }
  // The next call is one that tries to.
  void readsNext() {
    auto& trial = lane->readTrial(0);
    while (!trial.goesSecond()) {
      trial.next();
    }
  }
  // In the round after the offers, whose lines are those of even rounds.
  void vote(int rank, bool all) {
    Offered said;
    said.input.memory = all ? 1 : 0;
    std::memcpy(lane->line(rank, 2).payload, &said, sizeof(said));
  }
  size_t sevens() const {
    return static_cast<size_t>(std::count(result().begin(), result().end(), 7));
  }

  std::vector<int64_t> theirs = std::vector<int64_t>(3 * kCount, 7);
};

TEST(ReadAlltoallTest, OrdinaryMemoryIsReadIfAllOfferIt) {
  ReadCall call;
  call.readsNext();
  call.lane->sayAll(call.offered());
  EXPECT_EQ(errorOf(call), "");
  EXPECT_EQ(call.sevens(), 2 * kCount);
  EXPECT_EQ(call.lane->round(), 2u);
  EXPECT_TRUE(call.lane->mayRead);
}

// Then all of them go through slots, in which the others have put nothing.
TEST(ReadAlltoallTest, WhereOneCannotReadAllBeginAgain) {
  for (const bool mine : {true, false}) {
    ReadCall call;
    call.readsNext();
    call.lane->sayAll(call.offered());
    call.lane->readSucceeds = !mine;
    if (!mine) {
      call.vote(2, false);
    }
    EXPECT_EQ(errorOf(call), "");
    EXPECT_EQ(call.sevens(), 0u);
    EXPECT_GT(call.lane->round(), 2u);
    EXPECT_FALSE(call.lane->mayRead);
  }
}

TEST(ReadAlltoallTest, NothingIsReadIfNotAllOfferOrdinaryMemory) {
  for (const Offered& other : {Offered{}, kGood}) {
    ReadCall call;
    call.readsNext();
    call.lane->sayAll(call.offered());
    call.lane->say(2, other);
    EXPECT_EQ(errorOf(call), "");
    EXPECT_EQ(call.lane->countOfReads, 0);
    EXPECT_EQ(call.sevens(), 0u);
  }
}

// As it has been forbidden meanwhile, of which another thread of this rank has
// heard, but not yet of the others'. They have put nothing in their slots.
TEST(ReadAlltoallTest, WhoMayNotReadAnyMoreSeesThatOthersOffer) {
  const auto rounds = [](bool offered) {
    ReadCall call;
    call.parameters.inPlaceBytes = DirectParameters::kUnlimited;
    call.lane->mayRead = false;
    call.lane->sayAll(offered ? call.offered() : Offered{});
    EXPECT_EQ(errorOf(call), "");
    return call.lane->round();
  };
  EXPECT_EQ(rounds(true), rounds(false) + 1);
}

// For each of so many calls, whether it was read.
std::string waysOf(ReadCall& call, int calls) {
  std::string all;
  for (int i = 0; i < calls; i++) {
    const int before = call.lane->countOfReads;
    EXPECT_EQ(errorOf(call), "");
    all += call.lane->countOfReads > before ? 'r' : 's';
  }
  return all;
}

TEST(ReadAlltoallTest, WhatTakesAllRanksLessTimeIsDoneOnceBothWereTried) {
  ReadCall read;
  read.lane->sayAll(read.offered(1, UINT32_MAX));
  EXPECT_EQ(waysOf(read, 13), "sssssrrrrrrrr");
  ReadCall slots;
  slots.lane->sayAll(slots.offered(UINT32_MAX, 1));
  EXPECT_EQ(waysOf(slots, 13), "sssssrrrrrsss");
}

TEST(ReadAlltoallTest, WhereARankDoesNotKnowTheTimesAllTryAgain) {
  for (const auto& [readNs, slotsNs] : {std::pair{0u, 1u}, {UINT32_MAX, 0u}}) {
    ReadCall call;
    call.lane->sayAll(call.offered(readNs, slotsNs));
    EXPECT_EQ(waysOf(call, 17), "sssssrrrrrsssssrr");
  }
}

TEST(ReadAlltoallTest, WhereNotAllOfferAsTheyChooseAllTryAgain) {
  ReadCall call;
  call.lane->sayAll(call.offered(UINT32_MAX, 1));
  EXPECT_EQ(waysOf(call, 10), "sssssrrrrr");
  call.lane->say(2, {});
  EXPECT_EQ(waysOf(call, 1), "s");
  call.lane->sayAll(call.offered(UINT32_MAX, 1));
  EXPECT_EQ(waysOf(call, 11), "ssssrrrrrss");
}

// For nothing five times, and once more as they would choose.
TEST(ReadAlltoallTest, WhereARankNeverOffersAllTryAgainInTheNextPeriodOnly) {
  ReadCall call;
  call.lane->sayAll({});
  EXPECT_EQ(waysOf(call, 1), "s");
  const uint64_t rounds = call.lane->round();
  EXPECT_EQ(waysOf(call, 59), std::string(59, 's'));
  EXPECT_EQ(call.lane->round(), 60 * rounds + 6);
}

// Where all work in memory of the shared allocator there is nothing to try.
TEST(ReadAlltoallTest, WhereAllWereInPlaceAllTryAsSoonAsTheyAreNot) {
  ReadCall call;
  call.parameters.inPlaceBytes = 1;
  call.lane->own = kGood.input;
  call.lane->sayAll(kGood);
  EXPECT_EQ(waysOf(call, 11), std::string(11, 's'));
  call.lane->own = {};
  call.lane->sayAll(call.offered(1, UINT32_MAX));
  EXPECT_EQ(waysOf(call, 12), "ssssrrrrrrrr");
}

// ---- Who throws may change what others read.

TEST(ReadAlltoallTest, WhatWasReadAfterARankLetGoDoesNotCount) {
  ReadCall call;
  call.readsNext();
  call.lane->sayAll(call.offered());
  call.lane->onRead = [&] { call.lane->letGo(); };
  EXPECT_NE(errorOf(call), "");
}

TEST(ReadAlltoallTest, ARankThatFailsAfterItHasReadLetsGo) {
  ReadCall call;
  call.readsNext();
  call.lane->sayAll(call.offered());
  call.lane->line(1, 2).round = 1;  // still reads
  EXPECT_NE(errorOf(call).find("Timed out"), std::string::npos);
  EXPECT_TRUE(call.lane->hasLetGo());
}

}  // namespace
}  // namespace algorithms::offers
GLOO_NAMESPACE_END
