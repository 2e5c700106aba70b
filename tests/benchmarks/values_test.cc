#include "benchmarks/benchmark/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace benchmark {
namespace {

template <typename T>
class ValuesTest : public testing::Test {
 protected:
  static constexpr int kSize = 3;
  static constexpr int kInputs = 2;

  // What an allreduce of all inputs gives, element by element.
  static std::vector<T> sum(size_t elements, size_t iteration) {
    std::vector<T> total(elements, T(0));
    std::vector<T> input(elements);
    for (int i = 0; i < kSize * kInputs; i++) {
      fillInput(std::span<T>(input), i / kInputs, i % kInputs, iteration);
      for (size_t j = 0; j < elements; j++) {
        total[j] += input[j];
      }
    }
    return total;
  }
};

using Types = testing::Types<float, gloo::float16>;
TYPED_TEST_SUITE(ValuesTest, Types);

TYPED_TEST(ValuesTest, TheTrueSumPasses) {
  const auto total = this->sum(5000, 42);
  Checker<TypeParam> checker(this->kSize, this->kInputs, 42, false);
  checker.isSum(total);
  EXPECT_EQ(checker.errors(), "");
}

TYPED_TEST(ValuesTest, EachWrongElementIsFound) {
  for (const size_t wrong : {size_t{0}, kBlock - 1, kBlock, size_t{4999}}) {
    auto total = this->sum(5000, 1);
    total[wrong] += TypeParam(1);
    Checker<TypeParam> checker(this->kSize, this->kInputs, 1, false);
    checker.isSum(total);
    EXPECT_NE(checker.errors().find("element " + std::to_string(wrong)),
              std::string::npos);
  }
}

// As by an algorithm that mixes up its segments.
TYPED_TEST(ValuesTest, PartsThatChangedPlacesAreFound) {
  for (size_t bytes = 64; bytes <= 65536; bytes *= 2) {
    const auto part = std::ptrdiff_t(bytes / sizeof(TypeParam));
    auto total = this->sum(size_t(part) * 2, 1);
    std::rotate(total.begin(), total.begin() + part, total.end());
    Checker<TypeParam> checker(this->kSize, this->kInputs, 1, false);
    checker.isSum(total);
    EXPECT_NE(checker.errors(), "") << bytes;
  }
}

// The largest values that an input may have.
TYPED_TEST(ValuesTest, TheSumOfAsManyAsMayBeIsExact) {
  using M = Moduli<TypeParam>;
  const double each = inputValue<TypeParam>(0, M::kRank - 1, M::kElement - 1,
                                            M::kIteration - 1);
  auto total = makeValue<TypeParam>(each - 1);
  for (int64_t i = 1; i < mostSummed<TypeParam>(); i++) {
    total += makeValue<TypeParam>(each);
  }
  const double most = each * double(mostSummed<TypeParam>());
  EXPECT_TRUE(total == makeValue<TypeParam>(most - 1));
  EXPECT_FALSE(total == makeValue<TypeParam>(most));
  EXPECT_GT(most + each, double(M::kExact));
}

TYPED_TEST(ValuesTest, TheResultOfThePreviousIterationIsWrong) {
  const auto total = this->sum(100, 7);
  Checker<TypeParam> checker(this->kSize, this->kInputs, 8, false);
  checker.isSum(total);
  EXPECT_NE(checker.errors(), "");
}

TYPED_TEST(ValuesTest, AnotherRanksInputIsWrong) {
  std::vector<TypeParam> input(100);
  fillInput(std::span<TypeParam>(input), 1, 0, 3);
  Checker<TypeParam> checker(this->kSize, this->kInputs, 3, false);
  checker.isInput(input, 1, 0);
  EXPECT_EQ(checker.errors(), "");
  checker.isInput(input, 2, 0);
  EXPECT_NE(checker.errors(), "");
}

TYPED_TEST(ValuesTest, AllErrorsAreListedWhenAskedFor) {
  std::vector<TypeParam> zeros(10, TypeParam(-1));
  Checker<TypeParam> checker(this->kSize, this->kInputs, 0, true);
  checker.isSum(zeros);
  const std::string& errors = checker.errors();
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 9);
}

}  // namespace
}  // namespace benchmark
