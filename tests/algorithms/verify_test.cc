// Every algorithm of the catalogue, proven for every size and root.
#include "algorithms/verify/verify.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

// What needs several hosts is proven in hierarchy_test.cc.
std::vector<size_t> flatOnes() {
  std::vector<size_t> found;
  for (size_t i = 0; i < catalogue().size(); i++) {
    if (catalogue()[i].name.substr(0, 12) != "hierarchical") {
      found.push_back(i);
    }
  }
  return found;
}

class Proof : public testing::TestWithParam<size_t> {
 protected:
  const AlgorithmInfo& info() const { return catalogue()[GetParam()]; }
};

TEST_P(Proof, HoldsForEverySizeAndRootUpTo64) {
  for (int size = 1; size <= 64; size++) {
    for (int root = 0; root < rootsOf(info(), size); root++) {
      // The variants take turns, so that every size and every root meets each.
      for (int v = 0; v < kVariants; v += root == 0 ? 1 : kVariants) {
        const Job job = makeJob(info(), size, root, (v + root) % kVariants);
        if (info().offers(job.setting(0))) {
          ASSERT_EQ("", verify(job).error) << job.str();
        }
      }
    }
  }
}

TEST_P(Proof, HoldsForChosenLargeSizes) {
  struct Sample {
    int size;
    std::vector<int> variants;
  };
  const Sample samples[] = {{96, {0, 2}}, {127, {1}}, {128, {0, 4}},
                            {255, {0}},   {256, {3}}, {1000, {0}},
                            {1024, {0}}};
  for (const auto& [size, variants] : samples) {
    for (const int variant : variants) {
      for (const int root : {0, size / 3, size - 1}) {
        const Job job = makeJob(info(), size, root, variant);
        if (root < rootsOf(info(), size) && info().offers(job.setting(0))) {
          ASSERT_EQ("", verify(job).error) << job.str();
        }
      }
    }
  }
}

// Unsegmented, with a window for everything, and one message at a time in each
// direction: the model of the published formulas.
TEST_P(Proof, RoundsAndBytesAreThePublishedOnes) {
  for (int size = 1; size <= 64; size++) {
    for (const int root : {0, size / 3, size - 1}) {
      Job job = makeJob(info(), size, root, 0);
      if (root >= rootsOf(info(), size) || !info().offers(job.setting(0)) ||
          isUneven(info().collective)) {
        continue;
      }
      job.onePort = true;
      job.radix = 2 + size % 5;
      job.options.window = 4 * size + 4;
      const Report report = verify(job);
      const Work work = info().work(job.setting(0));
      const auto total = static_cast<double>(
          sharedBytes(info().collective, size, job.countsOf(0), 1));
      EXPECT_EQ("", report.error) << job.str();
      EXPECT_EQ(std::max(work.rounds, work.messages), report.rounds)
          << job.str();
      EXPECT_NEAR(work.moved * total, static_cast<double>(report.busiestBytes),
                  1e-6)
          << job.str();
      if (info().collective != Collective::kBarrier) {
        EXPECT_NEAR(work.reduced * total,
                    static_cast<double>(report.reducedBytes), 1e-6)
            << job.str();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Proof, testing::ValuesIn(flatOnes()),
                         [](const testing::TestParamInfo<size_t>& info) {
                           const AlgorithmInfo& a = catalogue()[info.param];
                           return std::string(nameOf(a.collective)) + "_" +
                                  std::string(a.name);
                         });

// 10 elements in strips of at most 4, each two blocks of two or one.
TEST(Strips, AScheduleEndsOnOneBeforeTheNext) {
  Job job;
  job.algorithm = findAlgorithm(Collective::kAllreduce, "halving_doubling");
  job.size = 2;
  job.count = 10;
  job.options.stripBytes = 4;
  const Program program = expand(job.algorithm->schedule(job.setting(0)),
                                 job.layouts(0), job.optionsOf(0));
  std::vector<size_t> sent;
  for (const Action& action : program.actions) {
    if (action.kind == ActionKind::kSend) {
      sent.push_back(action.source.offset);
      EXPECT_LE(action.bytes, 2u);
    }
  }
  ASSERT_EQ(6u, sent.size());  // to be reduced, and the sums
  for (size_t i = 0; i < sent.size(); i++) {
    EXPECT_EQ(i / 2, sent[i] < 4 ? 0u : sent[i] < 7 ? 1u : 2u) << sent[i];
  }
  EXPECT_EQ(10u, program.sendBytes);
}

TEST(Catalogue, IdsAreUniqueAndFitACheckWord) {
  std::set<int> ids;
  for (const AlgorithmInfo& info : catalogue()) {
    EXPECT_TRUE(ids.insert(info.id).second) << info.name;
    EXPECT_GT(info.id, 0);
    EXPECT_LT(info.id, 64);
  }
}

}  // namespace
}  // namespace algorithms::verify
GLOO_NAMESPACE_END
