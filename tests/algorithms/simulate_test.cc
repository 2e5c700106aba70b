#include "algorithms/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/hosts.h"
#include "algorithms/simulate/bound.h"
#include "gloo/common/error.h"
#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {
namespace {

constexpr double kAlpha = 5e-6;
constexpr double kBeta = 4e-11;
constexpr double kOverhead = 0.5e-6;

NetworkParameters network(double overhead = 0) {
  NetworkParameters n;
  n.between.latency = kAlpha - 2 * overhead;
  n.between.overhead = overhead;
  n.between.gapPerByte = kBeta;
  return n;
}

Scenario scenario(Collective collective, const char* algorithm, int size,
                  size_t count) {
  Scenario s;
  s.job.algorithm = findAlgorithm(collective, algorithm);
  s.job.size = size;
  s.job.count = count;
  s.job.options.inPlace = true;
  s.job.options.segmentBytes = count;
  s.network = network();
  return s;
}

double secondsOf(const Scenario& s) { return simulate(s).seconds; }

// A tenth of a nanosecond: times are whole picoseconds, and long ones are made
// of many.
void expectSeconds(double expected, double seconds) {
  EXPECT_NEAR(expected, seconds, 1e-10 + expected * 1e-9);
}

TEST(Simulate, OneMessageTakesLatencyTwoOverheadsAndItsBytes) {
  Scenario s = scenario(Collective::kBroadcast, "chain", 2, 1000);
  s.network = network(kOverhead);
  expectSeconds(kAlpha + 1000 * kBeta, secondsOf(s));
}

TEST(Simulate, ABinomialTreeTakesOneMessagePerLevel) {
  for (const int size : {2, 4, 8, 64, 1024}) {
    expectSeconds(
        ceilLog2(size) * (kAlpha + 100 * kBeta),
        secondsOf(scenario(Collective::kBroadcast, "binomial", size, 100)));
  }
}

TEST(Simulate, APipelineFillsAndThenRuns) {
  for (const int segments : {1, 4, 100}) {
    Scenario s = scenario(Collective::kBroadcast, "chain", 6,
                          static_cast<size_t>(segments) * 1000);
    s.job.options.segmentBytes = 1000;
    expectSeconds(5 * kAlpha + (4 + segments) * 1000 * kBeta, secondsOf(s));
  }
}

// Thakur et al. 2005, with what is reduced as well.
TEST(Simulate, AllreducesTakeWhatTheirFormulasSay) {
  constexpr double kGamma = 1e-10;
  constexpr size_t kBytes = 1 << 20;
  const auto of = [&](const char* name, int size) {
    Scenario s = scenario(Collective::kAllreduce, name, size, kBytes);
    s.network.reducePerByte = kGamma;
    return secondsOf(s);
  };
  for (const int n : {2, 4, 16}) {
    const double log = ceilLog2(n);
    const double part = (n - 1.0) / n * kBytes;
    expectSeconds(log * (kAlpha + kBytes * (kBeta + kGamma)),
                  of("recursive_doubling", n));
    expectSeconds(2 * log * kAlpha + part * (2 * kBeta + kGamma),
                  of("halving_doubling", n));
    expectSeconds(2 * (n - 1) * kAlpha + part * (2 * kBeta + kGamma),
                  of("ring", n));
  }
}

// Nothing is quicker than to move the bytes and to reduce them, and, where a
// rank has one message under way at a time, than ceil(log2 n) messages. (On a
// host a rank has two ports.)
void expectAboveTheBound(const AlgorithmInfo& info, int size, size_t bytes,
                         int ranksPerHost, bool oneAtATime) {
  const HostMap hosts = HostMap::ofEqualHosts(size, ranksPerHost);
  if (!info.offers({0, size, 0, 2, &hosts})) {
    return;
  }
  Scenario s = unitScenario(info, size, size / 2, 2, &hosts);
  const size_t parts = info.blocks == nullptr ? static_cast<size_t>(size) : 1;
  s.job.count = std::max<size_t>(1, bytes / parts);
  s.job.options.segmentBytes = 64 << 10;
  s.network = network(oneAtATime ? 0 : kOverhead);
  s.network.between.gap = oneAtATime ? kAlpha : 0;
  s.network.inside = s.network.between;
  s.network.inside.gapPerByte /= 4;
  s.network.ranksPerHost = ranksPerHost;
  s.network.reducePerByte = 2 * kBeta;
  const Bound bound =
      lowerBound(info.collective, size, s.job.count * parts, s.network);
  const double least =
      oneAtATime ? bound.seconds() : std::max(bound.bandwidth, bound.reduction);
  EXPECT_GE(secondsOf(s) * (1 + 1e-9) + 1e-10, least)
      << s.job.str() << ", " << ranksPerHost << " per host";
}

TEST(Simulate, NothingIsBelowTheLowerBound) {
  for (const AlgorithmInfo& info : catalogue()) {
    for (const int size : {2, 3, 4, 5, 7, 8, 12, 16, 33, 64}) {
      for (const size_t bytes : {1, 1000, 1 << 20}) {
        expectAboveTheBound(info, size, bytes, 1, true);
        for (const int ranksPerHost : {1, 2, 4}) {
          expectAboveTheBound(info, size, bytes, ranksPerHost, false);
        }
      }
    }
  }
}

TEST(Simulate, MessagesOfOneRankGoOneAfterTheOther) {
  // The root's port is what limits a flat scatter, and its processor.
  Scenario s = scenario(Collective::kScatter, "flat", 9, 1000);
  expectSeconds(kAlpha + 8 * 1000 * kBeta, secondsOf(s));
  s.network = network(kOverhead);
  expectSeconds(kAlpha + 8 * kOverhead - kOverhead + 1000 * kBeta,
                secondsOf(s));
  s.network.between.gap = 2e-6;
  expectSeconds(kAlpha + 7 * 2e-6 + 1000 * kBeta, secondsOf(s));
  // So it does with the root of a gather.
  s = scenario(Collective::kGather, "flat", 9, 1000);
  expectSeconds(kAlpha + 8 * 1000 * kBeta, secondsOf(s));
}

// Those that are not chosen by what they cost publish what synchronous messages
// take, which is proven in verify_test.cc; here they are not.
TEST(Simulate, RoundsAreThePublishedOnes) {
  for (const AlgorithmInfo& info : catalogue()) {
    for (const int size : {1, 2, 3, 4, 7, 8, 16, 21}) {
      const Setting setting{0, size, 0, 2};
      if (info.offers(setting) && !verify::isUneven(info.collective) &&
          !info.byNameOnly) {
        const Work work = info.work(setting);
        EXPECT_EQ(std::max(work.rounds, work.messages), roundsOf(info, size))
            << nameOf(info.collective) << " " << info.name << " " << size;
      }
    }
  }
}

TEST(Simulate, WhatIsSentIsReceivedAndIsThePublishedVolume) {
  for (const AlgorithmInfo& info : catalogue()) {
    for (const int size : {2, 3, 8, 13}) {
      const Setting setting{0, size, 0, 2};
      if (!info.offers(setting) || info.collective == Collective::kBarrier) {
        continue;
      }
      Scenario s = unitScenario(info, size);
      s.job.count *= 120;
      s.job.options.segmentBytes = 50;
      s.network = network(kOverhead);
      const Result result = simulate(s);
      EXPECT_EQ(result.totalBytes, result.receivedBytes);
      const double all = static_cast<double>(
          s.job.count * (info.blocks == nullptr ? size_t(size) : 1));
      EXPECT_DOUBLE_EQ(info.work(setting).moved * all,
                       static_cast<double>(result.busiestBytes))
          << s.job.str();
    }
  }
}

// When all is done, if a message takes 1 and all else nothing: worked out of
// the whole programs, again and again until nothing changes.
int64_t longestChain(const verify::Job& job) {
  const std::vector<Program> programs = verify::programsOf(job);
  std::vector<std::vector<int64_t>> starts;
  std::vector<std::vector<int64_t>> ends;
  for (const Program& p : programs) {
    starts.emplace_back(p.actions.size(), 0);
    ends.emplace_back(p.actions.size(), 0);
  }
  int64_t last = 0;
  for (bool changes = true; changes;) {
    changes = false;
    std::map<std::pair<int, int>, std::vector<int64_t>> sent;
    for (size_t r = 0; r < programs.size(); r++) {
      const Program& p = programs[r];
      int64_t before = 0;  // when all that the window has left behind are done
      for (size_t i = 0; i < p.actions.size(); i++) {
        const Action& a = p.actions[i];
        const auto window = static_cast<size_t>(p.window);
        before = i < window ? 0 : std::max(before, ends[r][i - window]);
        int64_t start = before;
        for (uint32_t w = 0; w < a.waitCount; w++) {
          start = std::max(start, ends[r][p.waits[a.firstWait + w]]);
        }
        if (a.after >= 0) {
          start = std::max(start, starts[r][static_cast<size_t>(a.after)]);
        }
        changes |= start != starts[r][i];
        starts[r][i] = start;
        if (a.kind == ActionKind::kSend) {
          sent[{static_cast<int>(r), a.peer}].push_back(start);
        }
        if (a.kind != ActionKind::kRecv) {
          ends[r][i] = start;
        }
      }
    }
    for (size_t r = 0; r < programs.size(); r++) {
      std::map<int, size_t> taken;
      for (size_t i = 0; i < programs[r].actions.size(); i++) {
        const Action& a = programs[r].actions[i];
        if (a.kind == ActionKind::kRecv) {
          const int64_t arrives =
              sent.at({a.peer, static_cast<int>(r)}).at(taken[a.peer]++) + 1;
          const int64_t end = std::max(starts[r][i], arrives);
          changes |= end != ends[r][i];
          ends[r][i] = end;
        }
        last = std::max(last, ends[r][i]);
      }
    }
  }
  return last;
}

TEST(Simulate, WaitsForWhatTheExecutorWaitsFor) {
  for (const AlgorithmInfo& info : catalogue()) {
    for (int variant = 0; variant < verify::kVariants; variant++) {
      for (const int size : {2, 3, 6, 8}) {
        Scenario s;
        s.job = verify::makeJob(info, size, 0, variant);
        s.network.between.latency = 1;
        if (info.offers(s.job.setting(0))) {
          EXPECT_EQ(longestChain(s.job), std::lround(secondsOf(s)))
              << s.job.str();
        }
      }
    }
  }
}

TEST(Simulate, ASlowRankHoldsUpTheOthers) {
  Scenario s = scenario(Collective::kAllreduce, "ring", 8, 1 << 20);
  const double all = secondsOf(s);
  s.slowRank = 3;
  s.slowFactor = 4;
  const double slow = secondsOf(s);
  EXPECT_GT(slow, 2 * all);
  EXPECT_LT(slow, 4 * all);
  // A leaf of the tree holds up nobody but itself.
  s = scenario(Collective::kBroadcast, "binomial", 8, 1000);
  s.slowRank = 7;
  s.slowFactor = 3;
  expectSeconds(3 * kAlpha + 5 * 1000 * kBeta, secondsOf(s));
}

// It sends, receives and reduces one after the other; a port does all at once.
TEST(Simulate, AProcessorThatMovesTheBytesDoesNothingElseMeanwhile) {
  constexpr size_t kBytes = 1 << 20;
  Scenario s =
      scenario(Collective::kAllreduce, "recursive_doubling", 2, kBytes);
  s.network.reducePerByte = 3 * kBeta;
  expectSeconds(kAlpha + kBytes * kBeta * (1 + 3), secondsOf(s));
  s.network.between.byProcessor = true;
  expectSeconds(kAlpha + kBytes * kBeta * (2 + 3), secondsOf(s));
  s = scenario(Collective::kBroadcast, "binomial", 3, kBytes);
  s.network.between.byProcessor = true;
  s.network.between.sending = 1.5;  // twice, then 0.5 of the receiver
  expectSeconds(kAlpha + kBytes * kBeta * 3.5, secondsOf(s));
}

TEST(Simulate, ACardIsBusyWhileTheProcessorMovesTheBytes) {
  Scenario s = scenario(Collective::kBroadcast, "chain", 3, 1 << 20);
  s.network.between.byProcessor = true;
  s.network.inside = s.network.between;
  s.network.ranksPerHost = 2;
  expectSeconds(2 * kAlpha + 4 * (1 << 20) * kBeta, secondsOf(s));
}

TEST(Simulate, RanksShareProcessors) {
  Scenario s = scenario(Collective::kAlltoall, "pairwise", 8, 8);
  s.network.ranksPerHost = 8;
  s.network.inside.overhead = kOverhead;
  const double alone = secondsOf(s);
  s.network.coresPerHost = 8;
  expectSeconds(alone, secondsOf(s));
  for (const int cores : {1, 2, 4}) {
    s.network.coresPerHost = cores;
    expectSeconds(8 * 7 * 2 * kOverhead / cores, secondsOf(s));
  }
  // And copies and reductions take a while of any length.
  s = scenario(Collective::kAllreduce, "flat", 4, 4);
  s.network.ranksPerHost = 4;
  s.network.localStep = kOverhead;
  expectSeconds(0, secondsOf(s));
  s.network.coresPerHost = 1;
  EXPECT_GE(secondsOf(s), 4 * 3 * kOverhead);
}

TEST(Simulate, ARankThatHasNothingToDoIsAskedBeforeAnotherThatHas) {
  constexpr double kSwitching = 2e-6;
  Scenario s = scenario(Collective::kBroadcast, "chain", 3, 4);
  s.network.ranksPerHost = 3;
  s.network.coresPerHost = 1;
  s.network.inside.overhead = kOverhead;
  expectSeconds(4 * kOverhead, secondsOf(s));
  // They are asked in the order 0, 2, 1: rank 1 is behind 2, and 2 behind 0.
  s.network.switching = kSwitching;
  expectSeconds(4 * kOverhead + 4 * kSwitching, secondsOf(s));
  // What comes while nobody has anything to do waits for its turn: all have
  // begun after 2 of them, rank 1 has its message after 6 more, and rank 2 its
  // own after 8.
  s.network.inside.latency = 11e-6;
  expectSeconds(4 * kOverhead + (2 + 6 + 8) * kSwitching, secondsOf(s));
}

TEST(Simulate, HostsAreFasterInsideAndShareALink) {
  Scenario s = scenario(Collective::kAllgather, "ring", 16, 1 << 20);
  s.network.ranksPerHost = 4;
  s.network.inside = s.network.between;
  s.network.inside.gapPerByte /= 10;
  // One neighbour in four is on another host, and all blocks go that way.
  EXPECT_GT(secondsOf(s), 15.0 * (1 << 20) * kBeta);
  EXPECT_LT(secondsOf(s), 17.0 * (1 << 20) * kBeta);
  // All four ranks of a host have theirs on another one.
  s = scenario(Collective::kAlltoall, "pairwise", 8, 1 << 20);
  s.network.ranksPerHost = 4;
  s.network.inside.gapPerByte = 1e-15;
  EXPECT_GT(secondsOf(s), 16.0 * (1 << 20) * kBeta);
  EXPECT_LT(secondsOf(s), 17.0 * (1 << 20) * kBeta);
}

TEST(Simulate, IsTheSameEveryTime) {
  Scenario s = scenario(Collective::kAlltoall, "bruck", 100, 1000);
  s.network = network(kOverhead);
  s.network.copyPerByte = 1e-10;
  const Result first = simulate(s);
  for (int i = 0; i < 3; i++) {
    const Result again = simulate(s);
    EXPECT_EQ(first.seconds, again.seconds);
    EXPECT_EQ(first.actions, again.actions);
  }
}

TEST(Simulate, SixteenThousandRanks) {
  const Scenario s =
      scenario(Collective::kAllreduce, "halving_doubling", 16384, 1 << 20);
  const Result result = simulate(s);
  EXPECT_EQ(16384u * 28, result.messages);
  const double part = 16383.0 / 16384 * (1 << 20);
  expectSeconds(28 * kAlpha + 2 * part * kBeta, result.seconds);
}

TEST(Simulate, WhatIsNoScenarioIsRefused) {
  Scenario s = scenario(Collective::kAllgather, "recursive_doubling", 6, 100);
  EXPECT_THROW(simulate(s), InvalidOperationException);
  s = scenario(Collective::kAllreduce, "ring", 4, 100);
  s.network.between.latency = -1;
  EXPECT_THROW(simulate(s), InvalidOperationException);
  s.network = network();
  s.network.ranksPerHost = 0;
  EXPECT_THROW(simulate(s), InvalidOperationException);
  s.network = network();
  s.network.coresPerHost = -1;
  EXPECT_THROW(simulate(s), InvalidOperationException);
  s.network = network();
  s.network.switching = -1;
  EXPECT_THROW(simulate(s), InvalidOperationException);
  s.network = network();
  s.slowFactor = 0;
  EXPECT_THROW(simulate(s), InvalidOperationException);
  // Longer than the clock goes: in one step, and in many.
  s = scenario(Collective::kBroadcast, "chain", 2, size_t{1} << 40);
  s.network.between.gapPerByte = 1e-5;
  EXPECT_THROW(simulate(s), InvalidOperationException);
  s.job.options.segmentBytes = size_t{1} << 30;
  EXPECT_THROW(simulate(s), InvalidOperationException);
}

}  // namespace
}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
