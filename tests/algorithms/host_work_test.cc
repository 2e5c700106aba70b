#include "algorithms/host_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/selection.h"
#include "algorithms/simulate/simulate.h"
#include "algorithms/tuning.h"
#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using verify::Job;

// Of all hosts the most, as the executor's programs have it.
struct Counted {
  double messages = 0;  // sent and received
  double bytes = 0;
  double card = 0;  // bytes, in the busier direction
};

Counted countPrograms(const Job& job) {
  const HostMap& hosts = *job.hosts;
  const auto number = static_cast<size_t>(hosts.hosts());
  std::vector<Counted> all(number);
  std::vector<double> in(number), out(number);
  const auto programs = verify::programsOf(job);
  for (int rank = 0; rank < job.size; rank++) {
    const auto host = static_cast<size_t>(hosts.hostOf(rank));
    for (const Action& action : programs[static_cast<size_t>(rank)].actions) {
      const bool sends = action.kind == ActionKind::kSend;
      if (!sends && action.kind != ActionKind::kRecv) {
        continue;
      }
      const auto bytes = static_cast<double>(action.bytes);
      all[host].messages += 1;
      all[host].bytes += bytes;
      if (hosts.hostOf(action.peer) != hosts.hostOf(rank)) {
        (sends ? out : in)[host] += bytes;
      }
    }
  }
  Counted most;
  for (size_t host = 0; host < number; host++) {
    most.messages = std::max(most.messages, all[host].messages);
    most.bytes = std::max(most.bytes, all[host].bytes);
    most.card = std::max({most.card, in[host], out[host]});
  }
  return most;
}

HostWork workOf(const Job& job, const NetworkParameters& network) {
  const size_t bytes =
      sharedBytes(job.algorithm->collective, job.size, job.countsOf(0), 1);
  return busiestHost(*job.algorithm, job.setting(0), bytes, 1,
                     job.options.segmentBytes, network);
}

void expectCounted(const Job& job) {
  const Counted counted = countPrograms(job);
  NetworkParameters network;
  network.between.overhead = network.inside.overhead = 1;
  EXPECT_DOUBLE_EQ(counted.messages, workOf(job, network).processorSeconds)
      << job.str();
  network = {};
  for (LinkParameters* link : {&network.between, &network.inside}) {
    link->gapPerByte = 1;
    link->byProcessor = true;
  }
  const HostWork bytes = workOf(job, network);
  EXPECT_DOUBLE_EQ(counted.bytes, bytes.processorSeconds) << job.str();
  EXPECT_DOUBLE_EQ(counted.card, bytes.cardSeconds) << job.str();
}

TEST(HostWork, IsThatOfTheProgramsOfAllRanksOfAHost) {
  for (const AlgorithmInfo& info : catalogue()) {
    if (verify::isUneven(info.collective)) {
      continue;
    }
    for (const int size : {1, 2, 3, 4, 6, 7, 8, 13, 16}) {
      for (const int ranksPerHost : {size, 1, 3, 4}) {
        // Of three hosts none is left out.
        if (ranksPerHost * 3 < size) {
          continue;
        }
        const HostMap hosts = HostMap::ofEqualHosts(size, ranksPerHost);
        for (int variant = 0; variant < verify::kVariants; variant++) {
          const int root = verify::rootsOf(info, size) - 1;
          Job job = verify::makeJob(info, size, root, variant, &hosts);
          job.options.stripBytes = 0;  // not counted: see host_work.h
          if (info.offers(job.setting(0))) {
            expectCounted(job);
          }
        }
      }
    }
  }
}

std::string chosen(int ranks, uint32_t cores, Collective collective,
                   size_t bytes) {
  internal::Profile profile;
  profile.cores = cores;
  profile.hostOfRank.assign(static_cast<size_t>(ranks), 0);
  const Selection selection(profile, ranks, "tcp");
  Setting setting;
  setting.size = ranks;
  setting.hosts = selection.hosts();
  return std::string(
      selection
          .choose(collective, setting, bytes, nullptr, 1 << 20, sizeof(float))
          .algorithm->name);
}

// What one rank saves by making others work costs as much as their work.
TEST(HostWork, RanksThatShareProcessorsTakeWhatIsLeastWorkForAll) {
  EXPECT_EQ("rabenseifner", chosen(8, 8, Collective::kReduce, 1 << 20));
  EXPECT_EQ("rabenseifner", chosen(8, 0, Collective::kReduce, 1 << 20));
  EXPECT_EQ("binomial", chosen(8, 2, Collective::kReduce, 1 << 20));
  EXPECT_EQ("flat", chosen(3, 3, Collective::kAllreduce, 1024));
  EXPECT_EQ("recursive_doubling", chosen(3, 2, Collective::kAllreduce, 1024));
  EXPECT_EQ("binomial", chosen(8, 8, Collective::kGather, 1024));
  EXPECT_EQ("flat", chosen(8, 2, Collective::kGather, 1024));
}

// As they have to fill, pipelines of few segments are no gain, also where
// others use the processors meanwhile.
TEST(HostWork, APipelineWantsSegments) {
  EXPECT_EQ("binomial", chosen(7, 2, Collective::kBroadcast, 768 << 10));
  EXPECT_EQ("chain", chosen(7, 2, Collective::kBroadcast, 16 << 20));
}

// Over loopback sending takes more than receiving: a root that sends the vector
// twice is busy for longer than the middle of a chain.
TEST(HostWork, ARootThatOnlySendsIsBusyForLongest) {
  EXPECT_EQ("binomial", chosen(3, 2, Collective::kBroadcast, 64 << 10));
  EXPECT_NE("binomial", chosen(3, 2, Collective::kBroadcast, 1 << 20));
  EXPECT_EQ("chain", chosen(3, 2, Collective::kBroadcast, 4 << 20));
  EXPECT_EQ("chain", chosen(3, 2, Collective::kBroadcast, 16 << 20));
  EXPECT_EQ("chain", chosen(4, 2, Collective::kBroadcast, 16 << 20));
}

// Of four blocks three are empty: six messages in place of eight.
TEST(HostWork, BlocksOfNoElementsAreNoWork) {
  EXPECT_EQ("halving_doubling", chosen(4, 2, Collective::kAllreduce, 4));
  EXPECT_EQ("recursive_doubling", chosen(4, 2, Collective::kAllreduce, 64));
}

// Three ranks on a processor: who has something to do is the last to look.
TEST(HostWork, WhatIsPassedOnIsWaitedForSegmentBySegment) {
  const HostMap hosts = HostMap::ofEqualHosts(3, 3);
  NetworkParameters network;
  network.coresPerHost = 1;
  network.switching = 1;
  const AlgorithmInfo& chain = *findAlgorithm(Collective::kBroadcast, "chain");
  const auto work = [&](size_t bytes) {
    return busiestHost(chain, {0, 3, 0, 2, &hosts}, bytes, 1, 100, network);
  };
  EXPECT_DOUBLE_EQ(2 * (1 + 1), work(100).processorSeconds);
  EXPECT_DOUBLE_EQ(2 * (5 + 1), work(500).processorSeconds);
}

TEST(HostWork, BruckOfThreeRanksCopiesOnlyWhatIsARanksOwn) {
  NetworkParameters network;
  network.copyPerByte = 1;
  const auto copied = [&](int size) {
    const HostMap hosts = HostMap::ofEqualHosts(size, size);
    const auto& bruck = *findAlgorithm(Collective::kAllgather, "bruck");
    return busiestHost(bruck, {0, size, 0, 2, &hosts}, 1200, 1, 1 << 20,
                       network)
        .processorSeconds;
  };
  EXPECT_DOUBLE_EQ(1200, copied(3));
  EXPECT_DOUBLE_EQ(1200 + 4 * 1200, copied(4));
}

TEST(HostWork, ManyRanksAreTakenForAll) {
  const HostMap hosts = HostMap::ofEqualHosts(1000, 1000);
  NetworkParameters network;
  network.inside.overhead = 1;
  const AlgorithmInfo& flat = *findAlgorithm(Collective::kGather, "flat");
  const Setting setting{0, 1000, 17, 2, &hosts};
  // The root's 999 messages are counted once, and the others' all.
  EXPECT_DOUBLE_EQ(
      2 * 999,
      busiestHost(flat, setting, 1000, 1, 1 << 20, network).processorSeconds);
}

// Of a ring's three ranks on a host the one in the middle reaches no other.
TEST(HostWork, SomeRanksReachOtherHostsAndSomeDoNot) {
  const HostMap hosts = HostMap::ofEqualHosts(6, 3);
  const AlgorithmInfo& ring = *findAlgorithm(Collective::kAllgather, "ring");
  const Setting setting{0, 6, 0, 2, &hosts};
  const HostWork work = busiestHost(ring, setting, 600, 1, 1 << 20, {});
  EXPECT_DOUBLE_EQ(0.5, work.crossingMoved);
  EXPECT_DOUBLE_EQ(0.5, work.crossingMessages);
  EXPECT_DOUBLE_EQ(1, work.insideMoved);
  EXPECT_DOUBLE_EQ(1, work.insideMessages);
  // That one is the slowest, if what is inside takes longer.
  NetworkParameters network;
  network.ranksPerHost = 3;
  network.between.gapPerByte = 1;
  network.inside.gapPerByte = 3;
  EXPECT_DOUBLE_EQ(
      3 * 500,
      Selection(network, 6).estimate(ring, setting, 600, 1 << 20).seconds);
}

// ---- Blocks of a host's ranks, on hosts of different sizes

HostMap mapOf(const std::vector<int>& ranksOnHosts) {
  std::vector<int> hostOfRank;
  for (size_t host = 0; host < ranksOnHosts.size(); host++) {
    hostOfRank.insert(hostOfRank.end(), static_cast<size_t>(ranksOnHosts[host]),
                      static_cast<int>(host));
  }
  return HostMap(hostOfRank);
}

// Host by host, what its busiest rank holds in the end: for each host as many
// blocks as it has counterparts there.
double mostBlocksMoved(const std::vector<int>& ranksOnHosts) {
  double most = 0;
  for (size_t host = 0; host < ranksOnHosts.size(); host++) {
    double blocks = 1;
    for (size_t other = 0; other < ranksOnHosts.size(); other++) {
      const int mine = ranksOnHosts[host];
      blocks += other == host ? 0 : (ranksOnHosts[other] + mine - 1) / mine;
    }
    most = std::max(most, (ranksOnHosts[host] - 1) * blocks + blocks - 1);
  }
  return most;
}

double hierarchicalMoved(const HostMap& hosts) {
  const Setting setting{0, hosts.size(), 0, 2, &hosts};
  return findAlgorithm(Collective::kAllgather, "hierarchical")
             ->work(setting)
             .moved *
         hosts.size();
}

TEST(HostWork, OfHostsOfDifferentSizesTheBusiestRanksBlocksCount) {
  for (const std::vector<int>& ranks : std::vector<std::vector<int>>{
           {1}, {4}, {1, 5}, {5, 1}, {2, 3, 7}, {8, 8, 3}, {6, 4, 4, 1, 9}}) {
    EXPECT_NEAR(mostBlocksMoved(ranks), hierarchicalMoved(mapOf(ranks)), 1e-9);
  }
}

TEST(HostWork, ManyHostsAreLookedAtBySize) {
  std::vector<int> ranks;
  for (int host = 0; host < 8192; host++) {
    ranks.push_back(1 + host % 4);
  }
  const HostMap hosts = mapOf(ranks);
  EXPECT_EQ((std::map<int, int>{{1, 2048}, {2, 2048}, {3, 2048}, {4, 2048}}),
            hosts.hostsByRanks());
  EXPECT_NEAR(mostBlocksMoved(ranks), hierarchicalMoved(hosts), 1e-6);
}

// Whether what is chosen on hosts that share a card is as quick as what the
// simulator, which knows the card, has for the best.
class SharedCard : public testing::TestWithParam<const char*> {
 protected:
  void expectNearBest(Collective collective, int size, int ranksPerHost,
                      size_t bytes) const {
    const bool verbs = GetParam() == std::string("ibverbs");
    NetworkParameters network = shippedTuning(GetParam(), size, false).network;
    network.inside = shippedTuning("shm", size, true).network.inside;
    network.ranksPerHost = ranksPerHost;
    const Selection selection(network, size);
    const Setting setting{0, size, 0, 2, selection.hosts()};
    const auto seconds = [&](const Choice& choice) {
      simulate::Scenario s;
      s.job.algorithm = choice.algorithm;
      s.job.size = size;
      s.job.hosts = selection.hosts();
      s.job.count = verify::hasVector(collective)
                        ? bytes
                        : bytes / static_cast<size_t>(size);
      s.job.options.inPlace = true;
      s.job.options.segmentBytes = choice.segmentBytes;
      s.job.options.window = choice.window;
      s.network = network;
      return simulate::simulate(s).seconds;
    };
    const Choice choice =
        selection.choose(collective, setting, bytes, nullptr, 1 << 20);
    const double taken = seconds(choice);
    for (const AlgorithmInfo& info : algorithmsOf(collective)) {
      if (info.offers(setting)) {
        EXPECT_LT(taken, 1.75 * seconds(selection.estimate(info, setting, bytes,
                                                           1 << 20)))
            << nameOf(collective) << " of " << bytes << " bytes, " << size
            << " ranks, " << ranksPerHost << " per host: chosen "
            << choice.algorithm->name << ", better " << info.name
            << (verbs ? ", verbs" : ", tcp");
      }
    }
  }
};

TEST_P(SharedCard, TheChoiceIsNearTheBestSimulated) {
  for (const auto collective : {Collective::kAllreduce, Collective::kAllgather,
                                Collective::kReduceScatter,
                                Collective::kBroadcast, Collective::kReduce}) {
    for (const auto& [size, ranksPerHost] :
         {std::pair{16, 4}, {24, 8}, {64, 8}, {12, 3}}) {
      for (const size_t bytes : {64, 1024, 16384, 262144, 4194304}) {
        expectNearBest(collective, size, ranksPerHost, bytes);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, SharedCard, testing::Values("tcp", "ibverbs"));

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
