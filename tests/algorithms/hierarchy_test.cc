// The hierarchical algorithms, proven for hosts of equal and of different
// sizes, and for ranks that lie on them in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "algorithms/hosts.h"
#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

// The host of each rank, host by host.
std::vector<int> hostByHost(const std::vector<int>& ranksOnHost) {
  std::vector<int> hosts;
  for (size_t host = 0; host < ranksOnHost.size(); host++) {
    hosts.insert(hosts.end(), static_cast<size_t>(ranksOnHost[host]),
                 static_cast<int>(host));
  }
  return hosts;
}

std::vector<int> even(int hosts, int ranks) {
  return hostByHost(std::vector<int>(static_cast<size_t>(hosts), ranks));
}

// 1 to `most` ranks on each host, in any order.
std::vector<int> mixed(int hosts, int most, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> ranks;
  for (int host = 0; host < hosts; host++) {
    ranks.push_back(1 +
                    static_cast<int>(random() % static_cast<unsigned>(most)));
  }
  std::vector<int> result = hostByHost(ranks);
  if (seed % 2 == 0) {
    std::shuffle(result.begin(), result.end(), random);
  }
  return result;
}

// So many ranks in all, 1 to `most` on each host.
std::vector<int> unevenOf(int size, int most) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::vector<int> ranks;
  for (int left = size; left > 0; left -= ranks.back()) {
    ranks.push_back(std::min(
        left, 1 + static_cast<int>(random() % static_cast<unsigned>(most))));
  }
  std::vector<int> result = hostByHost(ranks);
  if (size % 2 == 0) {
    std::shuffle(result.begin(), result.end(), random);
  }
  return result;
}

std::vector<const AlgorithmInfo*> hierarchical(bool unevenToo) {
  std::vector<const AlgorithmInfo*> all;
  for (const AlgorithmInfo& info : catalogue()) {
    if (isHierarchical(info) && (unevenToo || !isUneven(info.collective))) {
      all.push_back(&info);
    }
  }
  return all;
}

std::string describe(const std::vector<int>& hostOfRank) {
  std::string text = " on hosts";
  for (const int host : hostOfRank) {
    text += " " + std::to_string(host);
  }
  return text;
}

class HierarchyProof : public testing::TestWithParam<const AlgorithmInfo*> {
 protected:
  const AlgorithmInfo& info() const { return *GetParam(); }

  // For every root; the variants take turns.
  void prove(const std::vector<int>& hostOfRank) {
    const HostMap hosts(hostOfRank);
    const int size = hosts.size();
    for (int root = 0; root < rootsOf(info(), size); root++) {
      const Job job =
          makeJob(info(), size, root, variant_++ % kVariants, &hosts);
      ASSERT_EQ("", verify(job).error) << job.str() << describe(hostOfRank);
    }
  }

  // For some roots; these variants take turns.
  void proveSome(const std::vector<int>& hostOfRank,
                 const std::vector<int>& variants) {
    const HostMap hosts(hostOfRank);
    const std::set<int> roots = rootsToTry(info(), hosts.size());
    for (const int variant : variants) {
      const int root =
          *std::next(roots.begin(), variant % static_cast<int>(roots.size()));
      const Job job = makeJob(info(), hosts.size(), root, variant, &hosts);
      ASSERT_EQ("", verify(job).error) << job.str();
    }
  }

 private:
  int variant_ = 0;
};

TEST_P(HierarchyProof, HoldsForUpTo8HostsOf8Ranks) {
  for (int hosts = 1; hosts <= 8; hosts++) {
    for (int ranks = 1; ranks <= 8; ranks++) {
      for (int turn = 0; turn < (hosts * ranks <= 16 ? kVariants : 1); turn++) {
        prove(even(hosts, ranks));
      }
      prove(mixed(hosts, ranks, static_cast<unsigned>(8 * hosts + ranks)));
    }
  }
}

TEST_P(HierarchyProof, HoldsForAnyOrderOfAFewRanks) {
  // Every way to put 5 ranks on up to 5 hosts.
  for (int code = 0; code < 5 * 5 * 5 * 5 * 5; code++) {
    std::vector<int> hosts;
    bool isFirst = true;
    for (int rest = code, most = 0; hosts.size() < 5; rest /= 5) {
      hosts.push_back(rest % 5);
      isFirst &= rest % 5 <= most;  // of those that differ in names only
      most = std::max(most, rest % 5 + 1);
    }
    if (isFirst) {
      prove(hosts);
    }
  }
}

TEST_P(HierarchyProof, HoldsForUnevenHostsInEveryVariant) {
  for (unsigned seed = 0; seed < 40; seed++) {
    prove(mixed(1 + static_cast<int>(seed) % 5, 4, seed));
  }
  for (const std::vector<int>& ranks :
       {std::vector<int>{8, 1}, {1, 8}, {7, 3}, {5, 1, 2}, {2, 2, 2, 1}}) {
    for (int turn = 0; turn < kVariants; turn++) {
      prove(hostByHost(ranks));
    }
  }
}

TEST_P(HierarchyProof, HoldsForLargerOnes) {
  for (const auto& hostOfRank :
       {even(32, 8), even(3, 64), mixed(24, 8, 1), mixed(24, 8, 2)}) {
    proveSome(hostOfRank, {0, 1});
  }
}

// Many hosts of 1 to 16 ranks; or two, of a third and of two thirds.
TEST_P(HierarchyProof, HoldsForChosenLargeSizes) {
  for (const auto& [size, variants] : kLargeSizes) {
    proveSome(unevenOf(size, 16), variants);
    if (size < 1000) {
      proveSome(hostByHost({size - size / 3, size / 3}), variants);
    }
  }
}

// Of even counts; those of uneven ones are in uneven_work_test.cc.
class HierarchyCostProof : public HierarchyProof {
 protected:
  // One message at a time in each direction, as for the flat algorithms. Where
  // hosts differ in size the bytes are upper bounds, and the rounds not
  // claimed.
  void expectPublished(const std::vector<int>& hostOfRank, bool isEven) {
    const HostMap hosts(hostOfRank);
    const int size = hosts.size();
    const int root = rootsOf(info(), size) / 3;
    Job job = makeJob(info(), size, root, 0, &hosts);
    job.onePort = true;
    job.options.window = 1000 + 4 * size;
    const Report report = verify(job);
    const Work work = info().work(job.setting(0));
    const auto total = static_cast<double>(
        sharedBytes(info().collective, size, job.countsOf(0), 1));
    const double rounds = std::max(work.rounds, work.messages);
    const auto moved = static_cast<double>(report.busiestBytes);
    const auto reduced = info().collective == Collective::kBarrier
                             ? 0.0
                             : static_cast<double>(report.reducedBytes);
    const std::string where = job.str() + describe(hostOfRank);
    EXPECT_EQ("", report.error) << where;
    if (isEven) {
      EXPECT_EQ(rounds, report.rounds) << where;
      EXPECT_NEAR(work.moved * total, moved, 1e-6) << where;
    }
    EXPECT_GE(work.moved * total + 1e-6, moved) << where;
    EXPECT_GE(work.reduced * total + 1e-6, reduced) << where;
    EXPECT_GE(work.moved, work.insideMoved) << where;
    EXPECT_GE(work.rounds, work.insideRounds) << where;
  }
};

TEST_P(HierarchyCostProof, RoundsAndBytesAreThePublishedOnes) {
  for (int n = 1; n <= 8; n++) {
    for (int ranks = 1; ranks <= 8; ranks++) {
      expectPublished(even(n, ranks), true);
      expectPublished(mixed(n, ranks, static_cast<unsigned>(100 * n + ranks)),
                      false);
    }
  }
}

TEST_P(HierarchyCostProof, RoundsAndBytesAreThePublishedOnesForLargeSizes) {
  for (const auto& hostOfRank :
       {even(12, 8), even(3, 64), even(32, 8), even(64, 16)}) {
    expectPublished(hostOfRank, true);
  }
  for (const int size : {96, 127, 128, 255, 256, 1000}) {
    expectPublished(unevenOf(size, 16), false);
  }
}

std::string nameOfEntry(
    const testing::TestParamInfo<const AlgorithmInfo*>& info) {
  return std::string(nameOf(info.param->collective)) + "_" +
         std::string(info.param->name);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, HierarchyProof,
                         testing::ValuesIn(hierarchical(true)), nameOfEntry);
INSTANTIATE_TEST_SUITE_P(Catalogue, HierarchyCostProof,
                         testing::ValuesIn(hierarchical(false)), nameOfEntry);

// What a rank sends to other hosts: the point of it all.
TEST(Hierarchy, ARankSendsOnlyItsLanesToOtherHosts) {
  const HostMap hosts(even(4, 8));
  const AlgorithmInfo* info =
      findAlgorithm(Collective::kAllreduce, "hierarchical_ring");
  ASSERT_NE(nullptr, info);
  Job job = makeJob(*info, 32, 0, 0, &hosts);
  job.count = 32 * 100;
  for (int rank = 0; rank < 32; rank++) {
    const Program program = expand(info->schedule(job.setting(rank)),
                                   job.layouts(rank), job.optionsOf(rank));
    size_t bytes = 0;
    for (const Action& action : program.actions) {
      if (action.kind == ActionKind::kSend &&
          hosts.hostOf(action.peer) != hosts.hostOf(rank)) {
        bytes += action.bytes;
      }
    }
    EXPECT_EQ(2 * 3 * job.count / 32, bytes) << rank;
  }
}

TEST(Hierarchy, IsOfferedWhereSomeRanksShareAHost) {
  const HostMap oneHost({7, 7, 7});
  const HostMap eachItsOwn({0, 1, 2});
  const HostMap mixedHosts({3, 9, 3});
  for (const AlgorithmInfo* info : hierarchical(true)) {
    EXPECT_FALSE(info->offers({0, 3, 0, 2, nullptr}));
    EXPECT_FALSE(info->offers({0, 3, 0, 2, &oneHost}));
    EXPECT_FALSE(info->offers({0, 3, 0, 2, &eachItsOwn}));
    EXPECT_TRUE(info->offers({0, 3, 0, 2, &mixedHosts}));
  }
  EXPECT_EQ(1, mixedHosts.hostOf(1));
  EXPECT_EQ(2, mixedHosts.rankAt(0, 1));
  EXPECT_EQ(2, mixedHosts.lanes());
}

}  // namespace
}  // namespace algorithms::verify
GLOO_NAMESPACE_END
