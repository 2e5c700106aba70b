// Every algorithm of the catalogue, proven for every size and root.
#include "algorithms/verify/verify.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

std::vector<size_t> flatOnes(bool unevenToo) {
  std::vector<size_t> found;
  for (size_t i = 0; i < catalogue().size(); i++) {
    const AlgorithmInfo& info = catalogue()[i];
    if (!isHierarchical(info) && (unevenToo || !isUneven(info.collective))) {
      found.push_back(i);
    }
  }
  return found;
}

std::string nameOfEntry(const testing::TestParamInfo<size_t>& info) {
  const AlgorithmInfo& a = catalogue()[info.param];
  return std::string(nameOf(a.collective)) + "_" + std::string(a.name);
}

constexpr int kAllVariantsUpTo = 12;

class Proof : public testing::TestWithParam<size_t> {
 protected:
  const AlgorithmInfo& info() const { return catalogue()[GetParam()]; }
};

// Of even counts; those of uneven ones are in uneven_work_test.cc.
class CostProof : public Proof {};

TEST_P(Proof, HoldsForEverySizeAndRootUpTo64) {
  for (int size = 1; size <= 64; size++) {
    for (int root = 0; root < rootsOf(info(), size); root++) {
      // All variants where that is quick; else root 0 meets each, and the other
      // roots each one in turn, another one with each size.
      const bool all = root == 0 || size <= kAllVariantsUpTo;
      for (int v = 0; v < (all ? kVariants : 1); v++) {
        const Job job =
            makeJob(info(), size, root, (v + root + size) % kVariants);
        if (info().offers(job.setting(0))) {
          ASSERT_EQ("", verify(job).error) << job.str();
        }
      }
    }
  }
}

TEST_P(Proof, HoldsForChosenLargeSizes) {
  for (const auto& [size, variants] : kLargeSizes) {
    for (const int variant : variants) {
      for (const int root : rootsToTry(info(), size)) {
        const Job job = makeJob(info(), size, root, variant);
        if (info().offers(job.setting(0)) && isTried(info(), size)) {
          ASSERT_EQ("", verify(job).error) << job.str();
        }
      }
    }
  }
}

// A block of M + 1 elements, where M make a segment, has shorter segments than
// one of M, which the second strip has.
TEST_P(Proof, EveryStripsSegmentsFitTheirStageSlots) {
  constexpr size_t kSegment = 192;
  for (int size = 2; size <= 16 && hasVector(info().collective); size++) {
    for (const int root : rootsToTry(info(), size)) {
      Job job = makeJob(info(), size, root, 0);
      if (!info().offers(job.setting(0))) {
        continue;
      }
      const auto blocks = static_cast<size_t>(info().blocks(job.setting(0)));
      job.options.segmentBytes = kSegment;
      job.options.stripBytes = blocks * (kSegment + 1);
      job.options.stageBytes = 1;  // two slots
      job.count = 2 * job.options.stripBytes - 1;
      for (int rank = 0; rank < size; rank++) {
        const Program program = expand(info().schedule(job.setting(rank)),
                                       job.layouts(rank), job.optionsOf(rank));
        const size_t slot = program.stageBytes / 2;
        for (const Action& action : program.actions) {
          if (action.target.memory == Memory::kStage) {
            ASSERT_LE(action.target.offset % slot + action.bytes, slot)
                << job.str() << " rank " << rank;
          }
        }
      }
    }
  }
}

// Unsegmented, with a window for everything, and one message at a time in each
// direction: the model of the published formulas.
void expectPublishedCost(const AlgorithmInfo& info, int size, int root) {
  Job job = makeJob(info, size, root, 0);
  job.onePort = true;
  job.radix = 2 + size % 5;
  job.options.window = 4 * size + 4;
  if (!info.offers(job.setting(0))) {
    return;
  }
  const Report report = verify(job);
  const Work work = info.work(job.setting(0));
  const auto total = static_cast<double>(
      sharedBytes(info.collective, size, job.countsOf(0), 1));
  EXPECT_EQ("", report.error) << job.str();
  EXPECT_EQ(std::max(work.rounds, work.messages), report.rounds) << job.str();
  EXPECT_NEAR(work.moved * total, static_cast<double>(report.busiestBytes),
              1e-6)
      << job.str();
  if (info.collective != Collective::kBarrier) {
    EXPECT_NEAR(work.reduced * total, static_cast<double>(report.reducedBytes),
                1e-6)
        << job.str();
  }
}

TEST_P(CostProof, RoundsAndBytesAreThePublishedOnesUpTo64) {
  for (int size = 1; size <= 64; size++) {
    for (const int root : rootsToTry(info(), size)) {
      expectPublishedCost(info(), size, root);
    }
  }
}

TEST_P(CostProof, RoundsAndBytesAreThePublishedOnesForLargeSizes) {
  for (const LargeSize& large : kLargeSizes) {
    for (const int root : rootsToTry(info(), large.size)) {
      expectPublishedCost(info(), large.size, root);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Proof, testing::ValuesIn(flatOnes(true)),
                         nameOfEntry);
INSTANTIATE_TEST_SUITE_P(Catalogue, CostProof,
                         testing::ValuesIn(flatOnes(false)), nameOfEntry);

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
