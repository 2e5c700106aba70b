#include "gloo/math.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "gloo/algorithm.h"

namespace {

// What a caller's own number type must offer, and nothing else.
struct Money {
  int64_t cents;
  Money operator+(const Money& o) const { return {cents + o.cents}; }
  Money operator*(const Money& o) const { return {cents * o.cents}; }
  bool operator<(const Money& o) const { return cents < o.cents; }
  bool operator==(const Money& o) const { return cents == o.cents; }
};

template <typename T>
class MathTest : public testing::Test {
 public:
  static T number(int value) {
    if constexpr (std::is_same_v<T, Money>) {
      return Money{value};
    } else {
      return T(value);
    }
  }
};
using Ordered =
    testing::Types<char, signed char, unsigned char, short, unsigned short, int,
                   unsigned int, long, unsigned long, long long,
                   unsigned long long, float, double, gloo::float16,
                   gloo::bfloat16, long double, Money>;
TYPED_TEST_SUITE(MathTest, Ordered);

TYPED_TEST(MathTest, ReductionsOfUntypedMemory) {
  const auto number = &MathTest<TypeParam>::number;
  const std::vector<TypeParam> a{number(3), number(7), number(2)};
  const std::vector<TypeParam> b{number(5), number(4), number(2)};
  std::vector<TypeParam> c(3, number(0));
  const auto expect = [&](int x, int y, int z) {
    EXPECT_TRUE(c[0] == number(x));
    EXPECT_TRUE(c[1] == number(y));
    EXPECT_TRUE(c[2] == number(z));
  };
  gloo::sum<TypeParam>(c.data(), a.data(), b.data(), 3);
  expect(8, 11, 4);
  gloo::product<TypeParam>(c.data(), a.data(), b.data(), 3);
  expect(15, 28, 4);
  gloo::max<TypeParam>(c.data(), a.data(), b.data(), 3);
  expect(5, 7, 2);
  gloo::min<TypeParam>(c.data(), a.data(), b.data(), 3);
  expect(3, 4, 2);
}

TYPED_TEST(MathTest, ReductionsInPlaceOfTypedPointers) {
  const auto number = &MathTest<TypeParam>::number;
  std::vector<TypeParam> a{number(3), number(7)};
  const std::vector<TypeParam> b{number(5), number(4)};
  gloo::sum(a.data(), b.data(), 2);
  EXPECT_TRUE(a[0] == number(8) && a[1] == number(11));
  gloo::min(a.data(), b.data(), 2);
  EXPECT_TRUE(a[0] == number(5) && a[1] == number(4));
  gloo::product(a.data(), b.data(), 1);
  EXPECT_TRUE(a[0] == number(25) && a[1] == number(4));
  gloo::max(a.data(), b.data(), 2);
  EXPECT_TRUE(a[0] == number(25) && a[1] == number(4));
}

TYPED_TEST(MathTest, ReductionFunctionsKnowTheirTypeAndCompute) {
  const auto number = &MathTest<TypeParam>::number;
  using Function = gloo::ReductionFunction<TypeParam>;
  EXPECT_EQ(Function::sum->type(), gloo::SUM);
  EXPECT_EQ(Function::product->type(), gloo::PRODUCT);
  EXPECT_EQ(Function::max->type(), gloo::MAX);
  EXPECT_EQ(Function::min->type(), gloo::MIN);
  TypeParam a = number(3);
  const TypeParam b = number(5);
  Function::sum->call(&a, &b, 1);
  EXPECT_TRUE(a == number(8));
}

TEST(Math, ComplexNumbersAddAndMultiply) {
  using Complex = std::complex<double>;
  const Complex a(1, 2), b(3, -4);
  Complex c;
  gloo::sum<Complex>(&c, &a, &b, 1);
  EXPECT_EQ(c, Complex(4, -2));
  gloo::product<Complex>(&c, &a, &b, 1);
  EXPECT_EQ(c, Complex(11, 2));
  gloo::product(&c, &a, 1);
  EXPECT_EQ(c, Complex(7, 24));
}

TEST(Math, SumWorksForWhateverHasPlus) {
  const std::string a = "left ", b = "right";
  std::string c;
  gloo::sum<std::string>(&c, &a, &b, 1);
  EXPECT_EQ(c, "left right");
}

TEST(Math, RoundUp) {
  static_assert(gloo::roundUp(5, 4) == 8);
  EXPECT_EQ(gloo::roundUp(0, 4), 0);
  EXPECT_EQ(gloo::roundUp(8, 4), 8);
  EXPECT_EQ(gloo::roundUp(size_t{1}, 4096), 4096u);
}

TEST(Math, Log2Ceil) {
  static_assert(gloo::log2ceil(5) == 3);
  EXPECT_EQ(gloo::log2ceil(0), 0);
  EXPECT_EQ(gloo::log2ceil(1), 0);
  EXPECT_EQ(gloo::log2ceil(2), 1);
  EXPECT_EQ(gloo::log2ceil(3), 2);
  EXPECT_EQ(gloo::log2ceil(1024), 10);
  EXPECT_EQ(gloo::log2ceil(1025), 11);
  EXPECT_EQ(gloo::log2ceil(~uint64_t{0}), 64);
}

}  // namespace
