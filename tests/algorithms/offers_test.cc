// What ranks offer of their memory, where the others' lines change while they
// are read.
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "tests/algorithms/offers.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::offers {
namespace {

TEST(OffersTest, ALineThatChangesBetweenTwoLooksGivesNoMemory) {
  Call call(3, Collective::kAllreduce);
  call.lane->sayAll(kGood);
  call.lane->onMap = [&](int rank) {
    if (rank == 1) {
      call.lane->say(2,
                     {{kUnknown, 0}, {kUnknown, 0}, 1});  // as if it were new
    }
  };
  EXPECT_NE(errorOf(call).find("does not have mapped"), std::string::npos);
}

struct Case {
  Collective collective;
  int root;
};
constexpr Case kCases[] = {
    {Collective::kAllreduce, 0},     {Collective::kReduce, 0},
    {Collective::kReduce, 1},        {Collective::kBroadcast, 1},
    {Collective::kAllgather, 0},     {Collective::kAlltoall, 0},
    {Collective::kReduceScatter, 0},
};

// Where nothing was mapped, nothing is in place.
TEST(OffersTest, WhatOthersWriteInTheOwnLineIsNotItsOffer) {
  for (const auto& [collective, root] : kCases) {
    if (collective == Collective::kBroadcast) {
      continue;  // the others have no say
    }
    Call call(3, collective, root);
    call.parameters.chunkBytes = DirectParameters::kLeastChunk;
    const Offered ordinary{{Place::kOrdinary, 0}, {Place::kOrdinary, 0}, 0};
    call.lane->sayAll(ordinary);
    call.lane->onPublish = [&] { call.lane->say(0, ordinary); };
    EXPECT_EQ(errorOf(call), "") << nameOf(collective);
    EXPECT_EQ(call.lane->countOfReads, 0) << nameOf(collective);
    EXPECT_GT(call.lane->round(), 2u) << nameOf(collective);
  }
}

// Nor does a rank read there what it has offered, or that it has not.
TEST(OffersTest, WhatStandsInTheOwnLineMakesNoDifference) {
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  cases.push_back({Collective::kBroadcast, 0});
  for (const Case& one : cases) {
    for (const bool offers : {true, false}) {
      SCOPED_TRACE(MakeString(nameOf(one.collective), " from ", one.root,
                              offers ? ", offered" : ""));
      const auto rounds = [&](const Offered* own) {
        Call call(3, one.collective, one.root);
        call.parameters.chunkBytes = DirectParameters::kLeastChunk;
        call.lane->own = {offers ? kKnown : 0, 0};
        call.lane->sayAll(offers ? kGood : Offered{});
        if (own != nullptr) {
          call.lane->onPublish = [&] { call.lane->say(0, *own); };
        }
        EXPECT_EQ(errorOf(call), "");
        return call.lane->round();
      };
      const uint64_t usual = rounds(nullptr);
      for (const Offered& own :
           {Offered{}, Offered{{kKnown, 0}, {kKnown, 0}, 1},
            Offered{{Place::kOrdinary, 0}, {Place::kOrdinary, 0}, 0}}) {
        EXPECT_EQ(rounds(&own), usual) << own.input.memory;
      }
    }
  }
}

// ---- Who throws may change what others read.

TEST(OffersTest, WhatWasReadAfterARankLetGoDoesNotCount) {
  for (const auto& [collective, root] : kCases) {
    Call call(3, collective, root);
    call.lane->sayAll(kGood);
    call.lane->onMap = [&](int) { call.lane->letGo(); };
    EXPECT_NE(errorOf(call), "") << nameOf(collective);
  }
}

TEST(OffersTest, ARankThatFailsOnceItHasSaidThatItIsThroughLetsGo) {
  for (const auto& [collective, root] : kCases) {
    Call call(3, collective, root);
    call.lane->sayAll(kGood);
    call.lane->line(1, 2).round = 1;  // still reads
    EXPECT_NE(errorOf(call).find("Timed out"), std::string::npos);
    EXPECT_TRUE(call.lane->hasLetGo()) << nameOf(collective);
  }
}

// ---- Who offers in each round does not make the others begin for ever.

// Of an operation whose others offer, or do not, what this rank does not.
uint64_t roundsOf(Call& call, bool offered) {
  call.lane->own = {};
  call.lane->sayAll(offered ? Offered{{kUnknown, 0}, {kUnknown, 0}, 1}
                            : Offered{});
  EXPECT_EQ(errorOf(call), "");
  return call.lane->round();
}

TEST(OffersTest, OnlyTheFirstOneIsHeard) {
  for (const int ranks : {2, 3}) {
    for (const Case& one : kCases) {
      SCOPED_TRACE(MakeString(nameOf(one.collective), " of ", ranks));
      for (const bool halved : {true, false}) {
        const auto rounds = [&](bool offered) {
          Call call(ranks, one.collective, one.root);
          call.parameters.halvedBytes = halved ? 0 : SIZE_MAX;
          if (!halved) {  // what is longer than a chunk
            call.parameters.rootedBytes = {SIZE_MAX, SIZE_MAX};
            call.parameters.chunkBytes = DirectParameters::kLeastChunk;
          }
          return roundsOf(call, offered);
        };
        const uint64_t usual = rounds(false);
        EXPECT_GT(rounds(true), usual);
        // (A broadcast's root hands over, and the others vote.)
        EXPECT_LE(rounds(true), usual + 3);
      }
    }
  }
}

TEST(OffersTest, NoneIsHeardOfWhatIsShorter) {
  constexpr size_t kShort = 128;  // longer than a line
  for (const int ranks : {2, 3}) {
    for (const auto& [collective, root] : kCases) {
      Call offered(ranks, collective, root, kShort);
      Call usual(ranks, collective, root, kShort);
      EXPECT_EQ(roundsOf(offered, true), roundsOf(usual, false))
          << nameOf(collective) << " of " << ranks;
    }
  }
}

}  // namespace
}  // namespace algorithms::offers
GLOO_NAMESPACE_END
