#include "gloo/types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <type_traits>
#include <vector>

#include "tests/core/reference.h"

namespace {

using gloo::bfloat16;
using gloo::float16;
using gloo::Slot;
using gloo::testing::bitsFor;
using gloo::testing::Format;
using gloo::testing::valueOf;

template <typename T>
struct HalfTest : testing::Test {
  static constexpr Format kFormat = std::is_same_v<T, float16>
                                        ? gloo::testing::kFloat16Format
                                        : gloo::testing::kBfloat16Format;
  static T fromBits(uint16_t bits) {
    T value;
    value.x = bits;
    return value;
  }
};
using Halves = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(HalfTest, Halves);

static_assert(std::is_trivially_copyable_v<float16>);
static_assert(std::is_trivially_copyable_v<bfloat16>);
static_assert(std::is_standard_layout_v<float16>);
static_assert(!std::is_convertible_v<float16, float>, "conversion is explicit");

TYPED_TEST(HalfTest, EveryValueConvertsToTheNumberItStandsForAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    const auto half = this->fromBits(static_cast<uint16_t>(bits));
    const double expected = valueOf(this->kFormat, half.x);
    const auto value = static_cast<float>(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(TypeParam(value).x, bits);
      ASSERT_EQ(TypeParam(double{value}).x, bits);
    }
  }
}

// Between each two neighbours: just below, at, and just above the middle.
TYPED_TEST(HalfTest, FloatsRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x8000; bits++) {
    const double low = valueOf(this->kFormat, static_cast<uint16_t>(bits));
    const double high = valueOf(this->kFormat, static_cast<uint16_t>(bits + 1));
    if (!std::isfinite(low) || !std::isfinite(high)) {
      continue;
    }
    const auto middle = static_cast<float>((low + high) / 2);
    for (const float value : {std::nextafter(middle, 0.0f), middle,
                              std::nextafter(middle, 1e38f)}) {
      ASSERT_EQ(TypeParam(value).x, bitsFor(this->kFormat, value)) << bits;
      ASSERT_EQ(TypeParam(-value).x, bitsFor(this->kFormat, -value)) << bits;
    }
  }
}

// A double just above the middle must not be rounded to it on the way.
TYPED_TEST(HalfTest, DoublesAreRoundedOnce) {
  for (uint32_t bits = 0x0100; bits < 0x7b00; bits += 7) {
    const double low = valueOf(this->kFormat, static_cast<uint16_t>(bits));
    const double high = valueOf(this->kFormat, static_cast<uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    for (const double value :
         {std::nextafter(middle, 0.0), middle, std::nextafter(middle, 1e38)}) {
      ASSERT_EQ(TypeParam(value).x, bitsFor(this->kFormat, value)) << bits;
      ASSERT_EQ(TypeParam(-value).x, bitsFor(this->kFormat, -value)) << bits;
    }
  }
}

TYPED_TEST(HalfTest, TooLargeNumbersBecomeInfinity) {
  const uint16_t infinity =
      bitsFor(this->kFormat, std::numeric_limits<double>::infinity());
  EXPECT_EQ(TypeParam(1e300).x, infinity);
  EXPECT_EQ(TypeParam(-1e300).x, infinity | 0x8000);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::infinity()).x, infinity);
}

TYPED_TEST(HalfTest, IntegersOfAllKindsConvert) {
  EXPECT_EQ(static_cast<float>(TypeParam(3)), 3.0f);
  EXPECT_EQ(static_cast<float>(TypeParam(-3L)), -3.0f);
  EXPECT_EQ(static_cast<float>(TypeParam(3ul)), 3.0f);
  EXPECT_EQ(static_cast<float>(TypeParam(3ull)), 3.0f);
  TypeParam value;
  value = 7;
  EXPECT_EQ(static_cast<float>(value), 7.0f);
}

TYPED_TEST(HalfTest, ArithmeticRoundsTheResultOfFloat) {
  const TypeParam a(6), b(1.5);
  EXPECT_EQ(a + b, TypeParam(7.5));
  EXPECT_EQ(a - b, TypeParam(4.5));
  EXPECT_EQ(a * b, TypeParam(9));
  EXPECT_EQ(a / b, TypeParam(4));
  TypeParam c = a;
  c += b;
  c -= TypeParam(1);
  c *= TypeParam(2);
  c /= TypeParam(13);
  EXPECT_EQ(c, 1);
  EXPECT_EQ(-a, TypeParam(-6));
}

TYPED_TEST(HalfTest, ComparisonsAreThoseOfNumbers) {
  const TypeParam zero(0.0), minusZero(-0.0), one(1), two(2);
  const TypeParam nan(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(zero == minusZero);
  EXPECT_FALSE(zero < minusZero);
  EXPECT_TRUE(one < two && two > one && one <= two && two >= one);
  EXPECT_TRUE(TypeParam(-2) < TypeParam(-1));
  EXPECT_TRUE(nan != nan);
  EXPECT_FALSE(nan == nan);
  EXPECT_FALSE(nan < one || nan > one || nan <= one || nan >= one);
  EXPECT_TRUE(two == 2);
  EXPECT_TRUE(two != 1);
  EXPECT_TRUE(TypeParam(0.5) == 0.5 && TypeParam(1.5) == 1.5f);
  EXPECT_TRUE(zero != 0.5 && two != 2.5f);
  EXPECT_TRUE(zero != 1UL << 32 && TypeParam(1UL << 15) == 1UL << 15);
}

TYPED_TEST(HalfTest, PrintsAsTheNumber) {
  std::ostringstream out;
  out << TypeParam(1.5) << ' ' << TypeParam(-2) << ' '
      << TypeParam(0.25) / TypeParam(0);
  EXPECT_EQ(out.str(), "1.5 -2 inf");
}

// Just above the middle between two neighbours, by less than a double shows.
TEST(Bfloat16, LongIntegersAreRoundedOnce) {
  constexpr int64_t kMiddle = (int64_t{1} << 62) + (int64_t{1} << 54);
  const float below = std::ldexp(1.0f, 62);
  const float above = below + std::ldexp(1.0f, 55);
  EXPECT_EQ(below, float(bfloat16(kMiddle)));  // to even
  EXPECT_EQ(above, float(bfloat16(kMiddle + 1)));
  EXPECT_EQ(-above, float(bfloat16(-kMiddle - 1)));
  EXPECT_EQ(below, float(bfloat16(kMiddle - 1)));
  EXPECT_EQ(2 * above, float(bfloat16(2 * uint64_t{kMiddle} + 1)));
  EXPECT_EQ(std::ldexp(1.0f, 64), float(bfloat16(UINT64_MAX)));
}

TEST(Float16, GlooConversionFunctionsAgree) {
  EXPECT_EQ(gloo::cpu_float2half_rn(1.0f).x, 0x3c00);
  EXPECT_EQ(gloo::cpu_half2float(float16(0.5f)), 0.5f);
}

TEST(Slot, PrefixAndTagAndDeltaHaveTheirBits) {
  const Slot slot = Slot::build(gloo::kAllreduceSlotPrefix, 0xdeadbeef);
  EXPECT_EQ(static_cast<uint64_t>(slot), 0x04deadbeef000000u);
  EXPECT_EQ(static_cast<uint64_t>(slot + uint8_t{0xff}), 0x04deadbeef0000ffu);
  EXPECT_EQ(static_cast<uint64_t>(slot + 0xff + 1), 0x04deadbeef000100u);
}

TEST(Slot, EveryKindOfOperationHasAPrefixOfItsOwn) {
  EXPECT_EQ(gloo::kGatherSlotPrefix, 0x01);
  EXPECT_EQ(gloo::kAllgatherSlotPrefix, 0x02);
  EXPECT_EQ(gloo::kReduceSlotPrefix, 0x03);
  EXPECT_EQ(gloo::kAllreduceSlotPrefix, 0x04);
  EXPECT_EQ(gloo::kScatterSlotPrefix, 0x05);
  EXPECT_EQ(gloo::kBroadcastSlotPrefix, 0x06);
  EXPECT_EQ(gloo::kBarrierSlotPrefix, 0x07);
  EXPECT_EQ(gloo::kAlltoallSlotPrefix, 0x08);
}

}  // namespace
