// A reduction gives the same bits on all ranks and in every run, whatever
// arrives first.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "gloo/internal/kernels.h"
#include "gloo/types.h"
#include "tests/algorithms/ranks.h"
#include "tests/core/targets.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::ElementType;
using internal::Reduction;

constexpr size_t kPart = 40;  // elements

// Three ranks per host.
internal::Profile profileFor(int size) {
  internal::Profile profile;
  for (int rank = 0; rank < size; rank++) {
    profile.hostOfRank.push_back(rank / 3);
  }
  return profile;
}

// Values whose sum depends on the order of its terms, NaN and infinities, and
// zeros of either sign.
std::vector<float> inputOf(int rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 17);
  std::vector<float> values;
  for (size_t i = 0; i < count; i++) {
    const float mantissa = static_cast<float>(random() % 100003) / 7919.0f;
    const float value =
        std::ldexp(mantissa, static_cast<int>(random() % 30) - 15);
    switch (random() % 12) {
      case 0:
        values.push_back(std::numeric_limits<float>::quiet_NaN());
        break;
      case 1:
        values.push_back(-std::numeric_limits<float>::quiet_NaN());
        break;
      case 2:
        values.push_back(std::numeric_limits<float>::infinity());
        break;
      case 3:
      case 4:
        values.push_back(i % 2 == 0 ? -0.0f : 0.0f);
        break;
      default:
        values.push_back(random() % 2 == 0 ? value : -value);
    }
    // Elements where all ranks have zeros, so that signs show.
    if (i % 5 == 0) {
      values.back() = (static_cast<size_t>(rank) + i) % 3 == 0 ? 0.0f : -0.0f;
    }
  }
  return values;
}

// The whole result of each rank that has one.
std::vector<std::vector<float>> resultsOf(const AlgorithmInfo& info, int size,
                                          Reduction reduction, unsigned seed) {
  const bool divided = info.collective == Collective::kReduceScatter;
  const size_t count = kPart * (divided ? static_cast<size_t>(size) : 1);
  Request request;
  request.collective = info.collective;
  request.type = ElementType::kFloat32;
  request.reduction = reduction;
  request.elementSize = sizeof(float);
  request.counts.count = kPart;
  request.maxSegmentBytes = 36;
  request.forced = info.name.data();
  Ranks ranks(size, {seed % 2 == 0, seed, true, 0}, profileFor(size));
  std::vector<std::vector<float>> results(static_cast<size_t>(size));
  ranks.run([&](int rank, State& state) {
    const auto in = inputOf(rank, count);
    auto& out = results[static_cast<size_t>(rank)];
    out.resize(kPart);
    Arguments arguments;
    arguments.input = in.data();
    arguments.output = out.data();
    arguments.kernel = internal::kernelFor(ElementType::kFloat32, reduction);
    arguments.prefix = kReduceSlotPrefix;
    arguments.timeout = std::chrono::seconds(20);
    state.run(request, arguments);
  });
  if (info.collective == Collective::kReduce) {
    results.resize(1);
  }
  return results;
}

bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Bits : public ::testing::TestWithParam<Collective> {};

TEST_P(Bits, AreTheSameOnAllRanksAndInEveryRun) {
  for (const AlgorithmInfo& info : algorithmsOf(GetParam())) {
    for (const int size : {2, 3, 4, 5, 7, 8, 13, 16}) {
      const HostMap hosts(profileFor(size).hostOfRank);
      if (!info.offers({0, size, 0, 2, &hosts})) {
        continue;
      }
      for (const Reduction reduction :
           {Reduction::kSum, Reduction::kMin, Reduction::kMax}) {
        const auto first = resultsOf(info, size, reduction, 1);
        for (size_t rank = 1;
             GetParam() == Collective::kAllreduce && rank < first.size();
             rank++) {
          ASSERT_TRUE(sameBits(first[rank], first[0]))
              << info.name << " size " << size << " rank " << rank;
        }
        for (unsigned seed = 2; seed < 5; seed++) {
          const auto again = resultsOf(info, size, reduction, seed);
          for (size_t rank = 0; rank < first.size(); rank++) {
            ASSERT_TRUE(sameBits(again[rank], first[rank]))
                << info.name << " size " << size << " rank " << rank;
          }
        }
      }
    }
  }
}

TEST_P(Bits, AreTheSameOnEveryKindOfProcessor) {
  for (const AlgorithmInfo& info : algorithmsOf(GetParam())) {
    for (const int size : {2, 3, 5, 8}) {
      const HostMap hosts(profileFor(size).hostOfRank);
      if (!info.offers({0, size, 0, 2, &hosts})) {
        continue;
      }
      for (const Reduction reduction : {Reduction::kSum, Reduction::kProduct,
                                        Reduction::kMin, Reduction::kMax}) {
        std::vector<std::vector<float>> first;
        ::gloo::testing::forEachTarget([&](const std::string& target) {
          const auto results = resultsOf(info, size, reduction, 1);
          if (first.empty()) {
            first = results;
          }
          for (size_t rank = 0; rank < first.size(); rank++) {
            ASSERT_TRUE(sameBits(results[rank], first[rank]))
                << info.name << " size " << size << " rank " << rank << " on "
                << target;
          }
        });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Bits,
                         ::testing::Values(Collective::kAllreduce,
                                           Collective::kReduce,
                                           Collective::kReduceScatter),
                         [](const auto& info) {
                           return std::string(nameOf(info.param));
                         });

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
