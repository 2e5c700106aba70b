// Rounds and bytes of the v-collectives, whose counts differ from rank to rank.
#include "tests/algorithms/uneven_work.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

std::vector<const AlgorithmInfo*> unevenOnes() {
  std::vector<const AlgorithmInfo*> found;
  for (const AlgorithmInfo& info : catalogue()) {
    if (isUneven(info.collective)) {
      found.push_back(&info);
    }
  }
  return found;
}

class UnevenCostProof : public testing::TestWithParam<const AlgorithmInfo*> {
 protected:
  const AlgorithmInfo& info() const { return *GetParam(); }

  // As for even counts. But of the messages of Bruck's algorithm all but the
  // first may wrap around, and are two then.
  void expectRounds(const Job& job, int rounds) {
    const Work claimed = info().work(job.setting(0));
    const double most = std::max(claimed.rounds, claimed.messages);
    if (info().name == "bruck" && job.size > 3) {
      EXPECT_LE(most, rounds) << job.str();
      EXPECT_GE(2 * ceilLog2(job.size) - 1, rounds) << job.str();
    } else {
      EXPECT_EQ(most, rounds) << job.str();
    }
  }

  // Of 0 to 3 elements, and of 1 to 3: who has nothing sends no message. (For
  // the largest sizes, one of these.)
  void expectPublished(int size, int root, const HostMap* hosts) {
    for (const bool zerosToo : {true, false}) {
      if (size == (zerosToo ? 1000 : 1024)) {
        continue;
      }
      Job job = makeJob(info(), size, root, 0, hosts);
      job.counts = unevenCounts(info().collective, size, zerosToo ? 0 : 1);
      job.onePort = true;
      job.options.window = 1000 + 4 * size;
      if (!info().offers(job.setting(0))) {
        return;
      }
      const Report report = verify(job);
      const UnevenWork work = unevenWorkOf(job);
      EXPECT_EQ("", report.error) << job.str();
      EXPECT_EQ(work.busiest(), report.busiestBytes) << job.str();
      EXPECT_EQ(work.mostReduced(), report.reducedBytes) << job.str();
      if (!zerosToo) {
        expectRounds(job, report.rounds);
      }
    }
  }
};

TEST_P(UnevenCostProof, RoundsAndBytesAreThePublishedOnesUpTo64) {
  for (int size = 1; size <= 64; size++) {
    for (const int root : rootsToTry(info(), size)) {
      if (!isHierarchical(info())) {
        expectPublished(size, root, nullptr);
      } else if (size <= 8) {
        for (int hosts = 1; hosts <= 8; hosts++) {
          const HostMap map = HostMap::ofEqualHosts(size * hosts, size);
          expectPublished(size * hosts, root, &map);
        }
      }
    }
  }
}

TEST_P(UnevenCostProof, RoundsAndBytesAreThePublishedOnesForLargeSizes) {
  for (const LargeSize& large : kLargeSizes) {
    for (const int root : rootsToTry(info(), large.size)) {
      if (!isHierarchical(info())) {
        expectPublished(large.size, root, nullptr);
      } else if (large.size % 8 == 0) {
        const HostMap map = HostMap::ofEqualHosts(large.size, 8);
        expectPublished(large.size, root, &map);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, UnevenCostProof,
                         testing::ValuesIn(unevenOnes()), [](const auto& info) {
                           return std::string(nameOf(info.param->collective)) +
                                  "_" + std::string(info.param->name);
                         });

}  // namespace
}  // namespace algorithms::verify
GLOO_NAMESPACE_END
