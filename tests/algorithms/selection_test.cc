#include "algorithms/selection.h"

#include <gtest/gtest.h>

#include "algorithms/cost.h"
#include "algorithms/verify/verify.h"
#include "gloo/common/error.h"
#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::Profile;

constexpr size_t kLimit = 1 << 20;

std::string chosen(const Profile& profile, int size, size_t bytes,
                   const char* forced = nullptr,
                   Collective collective = Collective::kAllreduce) {
  const Selection selection(profile, size, "tcp");
  Setting setting;
  setting.size = size;
  return std::string(
      selection.choose(collective, setting, bytes, forced, kLimit)
          .algorithm->name);
}

TEST(Selection, FewRoundsForSmallAndFewBytesForLargeVectors) {
  for (const int size : {4, 8, 16, 64}) {
    Profile profile;
    profile.hostOfRank.assign(static_cast<size_t>(size), 0);
    EXPECT_EQ("recursive_doubling", chosen(profile, size, 4));
    EXPECT_NE("recursive_doubling", chosen(profile, size, 64 << 20));
  }
}

TEST(Selection, IsTheSameForAllRanks) {
  const Selection selection(Profile{}, 7, "tcp");
  for (const size_t bytes : {4, 1000, 100000, 10000000}) {
    Setting setting;
    setting.size = 7;
    const Choice first = selection.choose(Collective::kAllreduce, setting,
                                          bytes, nullptr, kLimit);
    for (setting.rank = 1; setting.rank < 7; setting.rank++) {
      const Choice other = selection.choose(Collective::kAllreduce, setting,
                                            bytes, nullptr, kLimit);
      EXPECT_EQ(first.algorithm, other.algorithm);
      EXPECT_EQ(first.segmentBytes, other.segmentBytes);
    }
  }
}

TEST(Selection, UnknownHostsAreNotOneHost) {
  Profile together;
  together.hostOfRank = {0, 0, 0, 0};
  Profile apart;
  apart.hostOfRank = {0, 1, 2, 3};
  const auto seconds = [](const Profile& profile) {
    return Selection(profile, 4, "ibverbs")
        .choose(Collective::kAllgather, {0, 4}, 1 << 20, "ring", kLimit)
        .seconds;
  };
  EXPECT_EQ(seconds(apart), seconds(Profile{}));
  EXPECT_NE(seconds(together), seconds(Profile{}));
}

// The last of its rounds sends what did not come in the one before.
TEST(Selection, BruckRoundsThatDoNotWaitAreOne) {
  const auto rounds = [](int size) {
    return findAlgorithm(Collective::kAllgather, "bruck")
        ->work({0, size, 0, 2})
        .rounds;
  };
  const double expected[] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4};
  for (int size = 1; size <= 13; size++) {
    EXPECT_EQ(expected[size - 1], rounds(size)) << size;
  }
}

// Who has more than one message to send does not wait in between.
TEST(Selection, ABinomialTreeIsAsDeepAsItsLongestWay) {
  const int expected[] = {0, 1, 1, 2, 2, 2, 2, 3, 3};
  for (int size = 1; size <= 9; size++) {
    for (const auto collective : {Collective::kBroadcast, Collective::kReduce,
                                  Collective::kScatter, Collective::kGather}) {
      const Work work =
          findAlgorithm(collective, "binomial")->work({0, size, 0, 2});
      EXPECT_EQ(expected[size - 1], work.rounds) << size;
      EXPECT_EQ(ceilLog2(size), work.messages) << size;
    }
  }
}

// A rank of an exchange has its own message and the other's to deal with.
TEST(Selection, AProcessorStartsMessagesOfBothDirections) {
  NetworkParameters network;
  network.between.overhead = 1;
  const auto seconds = [&](Collective collective, const char* name) {
    return Selection(network, 9)
        .estimate(*findAlgorithm(collective, name), {0, 9}, 900, 1 << 20)
        .seconds;
  };
  EXPECT_DOUBLE_EQ(2 + 7, seconds(Collective::kScatter, "flat"));
  EXPECT_DOUBLE_EQ(2 + 7, seconds(Collective::kAlltoall, "pairwise"));
  network.between.byProcessor = true;
  EXPECT_DOUBLE_EQ(2 + 7, seconds(Collective::kScatter, "flat"));
  EXPECT_DOUBLE_EQ(2 + 2 * 7, seconds(Collective::kAlltoall, "pairwise"));
}

TEST(Selection, TheCallerAndTheEnvironmentCanForceOne) {
  EXPECT_EQ("ring", chosen({}, 4, 4, "ring"));
  Profile profile;
  profile.forced = " allreduce = halving_doubling , broadcast=binomial";
  EXPECT_EQ("halving_doubling", chosen(profile, 4, 4));
  EXPECT_EQ("halving_doubling", chosen(profile, 4, 4, "ring"));
}

std::string errorOf(const Profile& profile) {
  try {
    Selection(profile, 2, "tcp");
  } catch (const InvalidOperationException& e) {
    return e.what();
  }
  return "";
}

TEST(Selection, WrongWishesAreNamed) {
  Profile profile;
  profile.forced = "allreduce=nonsense";
  EXPECT_NE(std::string::npos, errorOf(profile).find("nonsense"));
  EXPECT_NE(std::string::npos, errorOf(profile).find("recursive_doubling"));
  profile.forced = "allruduce=ring";
  EXPECT_NE(std::string::npos, errorOf(profile).find("allruduce"));
  EXPECT_NE(std::string::npos,
            errorOf(profile).find("there are allreduce, broadcast, barrier"));
  profile.forced = "ring";
  EXPECT_NE(std::string::npos, errorOf(profile).find("collective=algorithm"));
  EXPECT_THROW(chosen({}, 2, 4, "nonsense"), InvalidOperationException);
}

TEST(Selection, SegmentsAreAtMostWhatTheCallerAllows) {
  Profile profile;
  profile.segmentBytes = 5000;
  const Selection selection(profile, 2, "tcp");
  const auto segment = [&](size_t limit) {
    return selection
        .choose(Collective::kAllreduce, {0, 2}, 1 << 20, nullptr, limit)
        .segmentBytes;
  };
  EXPECT_EQ(5000u, segment(1 << 20));
  EXPECT_EQ(100u, segment(100));
}

TEST(Selection, AVectorThatIsHardlyLongerThanASegmentIsOne) {
  const Selection selection(Profile{}, 4, "tcp");
  const auto segment = [&](size_t bytes, size_t limit) {
    return selection
        .choose(Collective::kBroadcast, {0, 4}, bytes, "binomial", limit)
        .segmentBytes;
  };
  const size_t usual = segment(kLimit, kLimit);
  EXPECT_EQ(usual, segment(usual, kLimit));
  EXPECT_EQ(usual + usual / 5, segment(usual + usual / 5, kLimit));
  EXPECT_EQ(usual, segment(usual + usual / 3, kLimit));
  EXPECT_EQ(usual, segment(usual + usual / 5, usual));
}

// It is to be in a cache still when it is reduced; long vectors have few
// segments.
TEST(Selection, WhatIsReducedOnAHostIsInShorterSegments) {
  Profile profile;
  profile.hostOfRank.assign(4, 0);
  const Selection selection(profile, 4, "tcp");
  const auto segment = [&](Collective collective, const char* algorithm,
                           size_t bytes) {
    return selection
        .choose(collective, {0, 4}, bytes, algorithm, size_t{1} << 30)
        .segmentBytes;
  };
  constexpr size_t kShort = size_t{1} << 20;
  constexpr size_t kLong = size_t{64} << 20;
  EXPECT_EQ(65408u, segment(Collective::kReduce, "binomial", kShort));
  EXPECT_EQ(65408u,
            segment(Collective::kAllreduce, "halving_doubling", kShort));
  EXPECT_LT(65408u, segment(Collective::kBroadcast, "binomial", kShort));
  EXPECT_LT(65408u, segment(Collective::kAlltoall, "pairwise", kShort));
  EXPECT_EQ(size_t{1} << 20, segment(Collective::kReduce, "binomial", kLong));
  EXPECT_EQ(size_t{1} << 20, segment(Collective::kAlltoall, "pairwise", kLong));
}

NetworkParameters datacentre() {
  NetworkParameters network;
  network.between = {4e-6, 0.5e-6, 0.5e-6, 4e-11};
  network.reducePerByte = 2e-11;
  return network;
}

// Every chain of ranks makes shorter segments worthwhile, longer vectors do
// less so.
TEST(Selection, TheModelSegmentsAPipelineByItsLengthAndTheVectors) {
  const Selection selection(datacentre(), 1024);
  const AlgorithmInfo& chain = *findAlgorithm(Collective::kBroadcast, "chain");
  const auto segment = [&](int size, size_t bytes) {
    return selection.estimate(chain, {0, size}, bytes, size_t{1} << 30)
        .segmentBytes;
  };
  EXPECT_GT(segment(4, 64 << 20), segment(64, 64 << 20));
  EXPECT_LT(segment(64, 1 << 20), segment(64, 64 << 20));
  EXPECT_LT(segment(64, 64 << 20), size_t{8} << 20);
}

// A processor has the segment twice before the next rank's has it.
TEST(Selection, AProcessorThatPassesSegmentsOnFillsAPipelineHalfAsFast) {
  Work chain;
  chain.rounds = chain.moved = 1;
  Costs costs;
  costs.link.gapPerByte = 1e-9;
  const auto filling = [&](double hops) {
    chain.fill = hops;
    const double filled = costOf(chain, 100000, 1000, costs);
    chain.fill = 0;
    return filled - costOf(chain, 100000, 1000, costs);
  };
  EXPECT_NEAR(5e-6, filling(5), 1e-15);
  costs.link.byProcessor = true;
  EXPECT_NEAR(10e-6, filling(5), 1e-15);
}

// Recursive doubling reduces twice what halving and doubling does.
TEST(Selection, WhatTheWireHidesDoesNotCountButWhatTheProcessorDoesCounts) {
  NetworkParameters network = datacentre();
  const auto seconds = [&](const char* name) {
    return Selection(network, 2)
        .estimate(*findAlgorithm(Collective::kAllreduce, name), {0, 2},
                  64 << 20, 1 << 20)
        .seconds;
  };
  EXPECT_LT(seconds("recursive_doubling"), seconds("halving_doubling"));
  network.between.byProcessor = true;
  EXPECT_GT(seconds("recursive_doubling"), seconds("halving_doubling"));
}

// Rabenseifner's halves go both ways: no gain for two ranks whose processors
// move them.
TEST(Selection, AProcessorDoesNotMoveBothWaysAtOnce) {
  NetworkParameters network = datacentre();
  network.reducePerByte = 1e-11;
  network.between.byProcessor = true;
  EXPECT_EQ("binomial",
            Selection(network, 2)
                .choose(Collective::kReduce, {0, 2}, 64 << 20, nullptr, 1 << 20)
                .algorithm->name);
  EXPECT_EQ("rabenseifner",
            Selection(network, 8)
                .choose(Collective::kReduce, {0, 8}, 64 << 20, nullptr, 1 << 20)
                .algorithm->name);
}

TEST(Selection, WindowsHoldWhatFitsIntoALatency) {
  Work exchange;
  exchange.rounds = 1;
  exchange.moved = 1;
  exchange.messages = 127;
  Costs costs;
  costs.link = {9e-6, 0.5e-6, 0.2e-6, 1e-9};
  // 20 messages of 0.5 us in 10 us, and one that is done: sent and received.
  EXPECT_EQ(42, windowFor(exchange, 1000, kLimit, costs));
  costs.link.latency = 2e-6;
  EXPECT_EQ(32, windowFor(exchange, 1000, kLimit, costs));
  costs.link.latency = 1e-3;
  EXPECT_EQ(64, windowFor(exchange, 1000, kLimit, costs));
  // Long messages keep the link busy, whatever the latency.
  EXPECT_EQ(32, windowFor(exchange, 128 << 20, kLimit, costs));
  EXPECT_EQ(64, windowFor(exchange, 0, kLimit, {}));
  // As many as it may be, of several peers at once.
  costs.link.byProcessor = true;
  costs.link.latency = 2e-6;
  EXPECT_EQ(32, windowFor(exchange, 127 * 1024, 1024, costs));
  EXPECT_EQ(64, windowFor(exchange, 127 * 1025, 1024, costs));
  exchange.rounds = 127;
  EXPECT_EQ(32, windowFor(exchange, 127 * 1025, 1024, costs));
  exchange.rounds = 1;
  costs.link = {1e-3, 0.5e-6, 0.2e-6, 1e-9};

  NetworkParameters network;
  network.between = costs.link;
  const Selection selection(network, 128);
  EXPECT_EQ(
      64, selection
              .choose(Collective::kAlltoall, {0, 128}, 1000, "pairwise", kLimit)
              .window);
}

TEST(Selection, WhatIsCopiedCounts) {
  NetworkParameters network = datacentre();
  const auto seconds = [&](size_t bytes) {
    return Selection(network, 6)
        .estimate(*findAlgorithm(Collective::kAllgather, "bruck"), {0, 6},
                  bytes, 1 << 20)
        .seconds;
  };
  const double free = seconds(1 << 20);
  network.copyPerByte = 1e-10;
  EXPECT_DOUBLE_EQ(free + (1 << 20) * 1e-10, seconds(1 << 20));
}

TEST(Selection, VectorsAreCutIntoStripsWhereTheProcessorMovesThem) {
  NetworkParameters network = datacentre();
  const auto strip = [&](Collective collective, int size) {
    return Selection(network, size)
        .choose(collective, {0, size}, 64 << 20, nullptr, 1 << 20)
        .stripBytes;
  };
  EXPECT_EQ(0u, strip(Collective::kAllreduce, 2));
  network.between.byProcessor = true;
  EXPECT_EQ(1u << 20, strip(Collective::kAllreduce, 2));
  EXPECT_EQ(1u << 20, strip(Collective::kBroadcast, 2));
  EXPECT_EQ(16u << 20, strip(Collective::kAllreduce, 64));
  EXPECT_EQ(0u, strip(Collective::kAlltoall, 2));
}

// Each message costs the processor that moves the bytes more than it hides.
TEST(Selection, RanksOfOneHostSendFewMessagesOverVerbs) {
  Profile profile;
  profile.hostOfRank = {0, 0};
  const Selection selection(profile, 2, "ibverbs");
  const auto choose = [&](size_t bytes) {
    return selection.choose(Collective::kAllreduce, {0, 2}, bytes, nullptr,
                            kLimit);
  };
  EXPECT_EQ("recursive_doubling", choose(64 << 10).algorithm->name);
  EXPECT_GE(choose(64 << 10).segmentBytes, 64u << 10);
  EXPECT_EQ("halving_doubling", choose(1 << 20).algorithm->name);
  EXPECT_GE(choose(1 << 20).segmentBytes, 512u << 10);
}

TEST(Selection, AFixedSegmentLengthIsThatOfAllAlgorithms) {
  const Selection selection(datacentre(), 8, 12345);
  for (const AlgorithmInfo& info : algorithmsOf(Collective::kAllreduce)) {
    if (info.offers({0, 8})) {
      EXPECT_EQ(
          12345u,
          selection.estimate(info, {0, 8}, 1 << 20, 1 << 20).segmentBytes);
    }
  }
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
