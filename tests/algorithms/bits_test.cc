// A reduction gives the same bits on all ranks, in every run, and on every kind
// of processor, whatever arrives first.
#include <gtest/gtest.h>

#include "gloo/common/string.h"
#include "tests/algorithms/bit_values.h"
#include "tests/algorithms/ranks.h"
#include "tests/core/targets.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::ElementType;
using internal::Reduction;
using testing_support::bitBytes;
using Bytes = std::vector<char>;

constexpr size_t kPart = 40;  // elements

constexpr ElementType kFloats[] = {
    ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat32,
    ElementType::kFloat64};

Bytes inputOf(ElementType type, int rank, size_t count) {
  switch (type) {
    case ElementType::kInt8:
      return bitBytes<int8_t>(rank, count);
    case ElementType::kUint8:
      return bitBytes<uint8_t>(rank, count);
    case ElementType::kInt16:
      return bitBytes<int16_t>(rank, count);
    case ElementType::kUint16:
      return bitBytes<uint16_t>(rank, count);
    case ElementType::kInt32:
      return bitBytes<int32_t>(rank, count);
    case ElementType::kUint32:
      return bitBytes<uint32_t>(rank, count);
    case ElementType::kInt64:
      return bitBytes<int64_t>(rank, count);
    case ElementType::kUint64:
      return bitBytes<uint64_t>(rank, count);
    case ElementType::kFloat16:
      return bitBytes<float16>(rank, count);
    case ElementType::kBfloat16:
      return bitBytes<bfloat16>(rank, count);
    case ElementType::kFloat32:
      return bitBytes<float>(rank, count);
    case ElementType::kFloat64:
      return bitBytes<double>(rank, count);
    case ElementType::kComplex64:
      return bitBytes<std::complex<float>>(rank, count);
    case ElementType::kComplex128:
      return bitBytes<std::complex<double>>(rank, count);
    case ElementType::kUnknown:
      break;
  }
  return {};
}

// Three ranks per host.
internal::Profile profileFor(int size) {
  internal::Profile profile;
  for (int rank = 0; rank < size; rank++) {
    profile.hostOfRank.push_back(rank / 3);
  }
  return profile;
}

// One reduction, by one algorithm.
struct Work {
  const AlgorithmInfo* info = nullptr;
  int size = 0;
  ElementType type = ElementType::kUnknown;
  Reduction reduction = Reduction::kSum;

  bool isOffered() const {
    const HostMap hosts(profileFor(size).hostOfRank);
    return info->offers({0, size, 0, 2, &hosts}) &&
           internal::kernelFor(type, reduction) != nullptr;
  }
  std::string str() const {
    return MakeString(nameOf(info->collective), " by ", info->name, ", size ",
                      size, ", ", nameOf(type), " ", nameOf(reduction));
  }
};

bool isDivided(Collective collective) {
  return collective == Collective::kReduceScatter ||
         collective == Collective::kReduceScatterv;
}

// Of a vector of kPart elements for each rank, or for all together.
std::vector<size_t> offsetsOf(const Work& work) {
  std::vector<size_t> offsets{0};
  for (int rank = 0; rank < work.size; rank++) {
    const size_t part = kPart + (rank % 2 == 0 ? 7 : 0) - rank % 3;
    offsets.push_back(offsets.back() + part);
  }
  return offsets;
}

// The whole result of each rank that has one.
std::vector<Bytes> resultsOf(const Work& work, unsigned seed) {
  const Collective collective = work.info->collective;
  const std::vector<size_t> offsets = offsetsOf(work);
  const auto size = static_cast<size_t>(work.size);
  Request request;
  request.collective = collective;
  request.type = work.type;
  request.reduction = work.reduction;
  request.elementSize = internal::elementBytes(work.type);
  size_t count = kPart * (isDivided(collective) ? size : 1);
  if (collective == Collective::kReduceScatterv) {
    request.counts.sendOffsets = request.counts.recvOffsets = offsets.data();
    count = offsets.back();
  } else {
    request.counts.count = kPart;
  }
  request.maxSegmentBytes = 9 * request.elementSize;
  request.forced = work.info->name.data();
  Ranks ranks(work.size, {seed % 2 == 0, seed, true, 0}, profileFor(work.size));
  std::vector<Bytes> results(size);
  ranks.run([&](int rank, State& state) {
    const Bytes in = inputOf(work.type, rank, count);
    auto& out = results[static_cast<size_t>(rank)];
    out.resize((kPart + 7) * request.elementSize);
    Arguments arguments;
    arguments.input = in.data();
    arguments.output = out.data();
    arguments.kernel = internal::kernelFor(work.type, work.reduction);
    arguments.prefix = kReduceSlotPrefix;
    arguments.timeout = std::chrono::seconds(20);
    state.run(request, arguments);
  });
  if (collective == Collective::kReduce) {
    results.resize(1);
  }
  return results;
}

class Bits : public ::testing::TestWithParam<Collective> {
 protected:
  // Calls each(work) for what there is of these.
  template <typename Each>
  void forAll(const std::vector<int>& sizes,
              const std::vector<ElementType>& types,
              const std::vector<Reduction>& reductions, const Each& each) {
    for (const AlgorithmInfo& info : algorithmsOf(GetParam())) {
      for (const int size : sizes) {
        for (const ElementType type : types) {
          for (const Reduction reduction : reductions) {
            const Work work{&info, size, type, reduction};
            if (work.isOffered()) {
              each(work);
            }
          }
        }
      }
    }
  }
};

std::vector<ElementType> allTypes() {
  std::vector<ElementType> types;
  for (size_t type = 1; type < internal::kElementTypes; type++) {
    types.push_back(static_cast<ElementType>(type));
  }
  return types;
}

void expectSameInEveryRun(const Work& work, unsigned runs) {
  const auto first = resultsOf(work, 1);
  for (size_t rank = 1;
       work.info->collective == Collective::kAllreduce && rank < first.size();
       rank++) {
    ASSERT_EQ(first[0], first[rank]) << work.str() << ", rank " << rank;
  }
  for (unsigned seed = 2; seed < 2 + runs; seed++) {
    ASSERT_EQ(first, resultsOf(work, seed)) << work.str();
  }
}

TEST_P(Bits, AreTheSameOnAllRanksAndInEveryRun) {
  forAll({2, 3, 4, 5, 7, 8, 13, 16}, {ElementType::kFloat32},
         {Reduction::kSum, Reduction::kMin, Reduction::kMax},
         [](const Work& work) { expectSameInEveryRun(work, 3); });
  forAll({3, 8, 13}, {std::begin(kFloats), std::end(kFloats)},
         {Reduction::kSum, Reduction::kProduct, Reduction::kMin},
         [](const Work& work) { expectSameInEveryRun(work, 2); });
  forAll({5}, allTypes(),
         {Reduction::kSum, Reduction::kProduct, Reduction::kMax},
         [](const Work& work) { expectSameInEveryRun(work, 1); });
}

void expectSameOnEveryTarget(const Work& work) {
  std::vector<Bytes> first;
  ::gloo::testing::forEachTarget([&](const std::string& target) {
    const auto results = resultsOf(work, 1);
    if (first.empty()) {
      first = results;
    }
    ASSERT_EQ(first, results) << work.str() << " on " << target;
  });
}

TEST_P(Bits, AreTheSameOnEveryKindOfProcessor) {
  forAll(
      {2, 3, 8}, {std::begin(kFloats), std::end(kFloats)},
      {Reduction::kSum, Reduction::kProduct, Reduction::kMin, Reduction::kMax},
      expectSameOnEveryTarget);
  forAll(
      {5}, allTypes(),
      {Reduction::kSum, Reduction::kProduct, Reduction::kMin, Reduction::kMax},
      expectSameOnEveryTarget);
}

INSTANTIATE_TEST_SUITE_P(
    , Bits,
    ::testing::Values(Collective::kAllreduce, Collective::kReduce,
                      Collective::kReduceScatter, Collective::kReduceScatterv),
    [](const auto& info) { return std::string(nameOf(info.param)); });

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
