// float16 and bfloat16: every value against sampled ones, on every target.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "gloo/internal/kernels.h"
#include "tests/core/reference.h"
#include "tests/core/targets.h"

namespace {

using gloo::internal::ElementType;
using gloo::internal::kernelFor;
using gloo::internal::Reduction;
using gloo::testing::bitsFor;
using gloo::testing::forEachTarget;
using gloo::testing::Format;
using gloo::testing::valueOf;
using Bits = std::vector<uint16_t>;

constexpr size_t kValues = 1 << 16;

struct Case {
  ElementType type;
  Reduction reduction;
};

Bits everyValue() {
  Bits all(kValues);
  std::iota(all.begin(), all.end(), uint16_t{0});
  return all;
}

// Zeros, ones, the subnormals' ends, the largest, infinities, NaNs, and others.
Bits samples(Format format) {
  const auto infinity = static_cast<uint16_t>(((1 << format.exponentBits) - 1)
                                              << format.mantissaBits);
  const auto normal = static_cast<uint16_t>(1 << format.mantissaBits);
  Bits result{0x0000,
              0x0001,
              static_cast<uint16_t>(normal - 1),
              normal,
              bitsFor(format, 1),
              bitsFor(format, 1.5),
              bitsFor(format, 0.33333),
              static_cast<uint16_t>(infinity - 1),
              infinity,
              static_cast<uint16_t>(infinity + 1),
              static_cast<uint16_t>(infinity | 0x7f)};
  for (size_t i = 0, n = result.size(); i < n; i++) {
    result.push_back(result[i] | 0x8000);
  }
  std::mt19937 random(20240607);
  for (int i = 0; i < 10; i++) {
    result.push_back(static_cast<uint16_t>(random()));
  }
  return result;
}

class HalfKernels : public testing::TestWithParam<Case> {
 protected:
  Format format() const {
    return GetParam().type == ElementType::kFloat16
               ? gloo::testing::kFloat16Format
               : gloo::testing::kBfloat16Format;
  }
};

TEST_P(HalfKernels, EveryValueIsComputedAsFloatAndRoundedOnce) {
  const auto [type, reduction] = GetParam();
  const Bits a = everyValue();
  for (const uint16_t sample : samples(format())) {
    const Bits b(kValues, sample);
    Bits expected(kValues);
    for (size_t i = 0; i < kValues; i++) {
      gloo::testing::reduceOne(type, reduction, &expected[i], &a[i], &b[i]);
    }
    forEachTarget(
        [&, type = type, reduction = reduction](const std::string& name) {
          Bits c(kValues);
          kernelFor(type, reduction)(c.data(), a.data(), b.data(), kValues,
                                     nullptr);
          for (size_t i = 0; i < kValues; i++) {
            ASSERT_EQ(c[i], expected[i])
                << name << ": " << a[i] << " and " << sample;
          }
        });
  }
}

TEST_P(HalfKernels, DivisionRoundsOnce) {
  const ElementType type = GetParam().type;
  for (const size_t divisor : {1, 2, 3, 7, 64, 1000}) {
    Bits expected(kValues);
    for (size_t i = 0; i < kValues; i++) {
      const auto value =
          static_cast<float>(valueOf(format(), static_cast<uint16_t>(i)));
      expected[i] = bitsFor(format(), value / static_cast<float>(divisor));
    }
    forEachTarget([&](const std::string& name) {
      Bits c = everyValue();
      gloo::internal::divideKernelFor(type)(c.data(), kValues, divisor);
      EXPECT_EQ(c, expected) << name << ": by " << divisor;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, HalfKernels, testing::ValuesIn([] {
      std::vector<Case> all;
      for (const auto type : {ElementType::kFloat16, ElementType::kBfloat16}) {
        for (const auto reduction : {Reduction::kSum, Reduction::kProduct,
                                     Reduction::kMin, Reduction::kMax}) {
          all.push_back({type, reduction});
        }
      }
      return all;
    }()),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(nameOf(info.param.type)) + "_" +
             nameOf(info.param.reduction);
    });

}  // namespace
