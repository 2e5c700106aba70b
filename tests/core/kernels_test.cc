// Every kernel on every dispatch target, against the contract: bits, lengths,
// alignments, and what lies beside the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gloo/internal/kernels.h"
#include "tests/core/reference.h"
#include "tests/core/targets.h"

namespace {

using gloo::internal::divideKernelFor;
using gloo::internal::elementBytes;
using gloo::internal::ElementType;
using gloo::internal::exchangeKernel;
using gloo::internal::Kernel;
using gloo::internal::kernelFor;
using gloo::internal::Reduction;
using gloo::testing::forEachTarget;
using Bytes = std::vector<unsigned char>;

constexpr Reduction kAll[] = {Reduction::kSum, Reduction::kProduct,
                              Reduction::kMin, Reduction::kMax};

struct Case {
  ElementType type;
  Reduction reduction;
};

std::vector<Case> allCases() {
  std::vector<Case> all;
  for (size_t t = 1; t < gloo::internal::kElementTypes; t++) {
    for (const Reduction reduction : kAll) {
      const auto type = static_cast<ElementType>(t);
      if (kernelFor(type, reduction) != nullptr) {
        all.push_back({type, reduction});
      }
    }
  }
  return all;
}

// Random bits; every fourth part of an element is a special value instead.
template <typename T>
void addSpecials(Bytes& bytes, std::mt19937& random) {
  using Limits = std::numeric_limits<T>;
  const T specials[] = {T(0),
                        T(-0.0),
                        Limits::infinity(),
                        -Limits::infinity(),
                        Limits::quiet_NaN(),
                        -Limits::quiet_NaN(),
                        Limits::signaling_NaN(),
                        Limits::denorm_min(),
                        Limits::min(),
                        Limits::max(),
                        T(1)};
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    if (random() % 4 == 0) {
      std::memcpy(&bytes[at], &specials[random() % std::size(specials)],
                  sizeof(T));
    }
  }
}

Bytes randomBytes(ElementType type, size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (auto& byte : bytes) {
    byte = static_cast<unsigned char>(random());
  }
  if (type == ElementType::kFloat32 || type == ElementType::kComplex64) {
    addSpecials<float>(bytes, random);
  } else if (type == ElementType::kFloat64 ||
             type == ElementType::kComplex128) {
    addSpecials<double>(bytes, random);
  }
  return bytes;
}

Bytes expectedFor(const Case& which, const Bytes& a, const Bytes& b) {
  Bytes c(a.size());
  const size_t step = elementBytes(which.type);
  for (size_t at = 0; at < a.size(); at += step) {
    gloo::testing::reduceOne(which.type, which.reduction, &c[at], &a[at],
                             &b[at]);
  }
  return c;
}

class Kernels : public testing::TestWithParam<Case> {
 protected:
  Kernel kernel() const {
    return kernelFor(GetParam().type, GetParam().reduction);
  }
  size_t step() const { return elementBytes(GetParam().type); }
};

TEST_P(Kernels, ManyElementsHaveTheReferencesBitsOnEveryTarget) {
  constexpr size_t kElements = 20011;
  const Bytes a = randomBytes(GetParam().type, kElements * step(), 1);
  const Bytes b = randomBytes(GetParam().type, kElements * step(), 2);
  const Bytes expected = expectedFor(GetParam(), a, b);
  forEachTarget([&](const std::string& name) {
    Bytes c(a.size());
    kernel()(c.data(), a.data(), b.data(), kElements, nullptr);
    EXPECT_TRUE(c == expected) << name;
  });
}

TEST_P(Kernels, EveryLengthLeavesWhatIsBesideTheResultsAlone) {
  constexpr size_t kMost = 300;
  constexpr size_t kGuard = 128;
  const Bytes a = randomBytes(GetParam().type, kMost * step(), 3);
  const Bytes b = randomBytes(GetParam().type, kMost * step(), 4);
  const Bytes all = expectedFor(GetParam(), a, b);
  forEachTarget([&](const std::string& name) {
    for (size_t elements = 0; elements <= kMost; elements++) {
      const size_t bytes = elements * step();
      const Bytes before(bytes + 2 * kGuard, 0xa5);
      Bytes expected = before;
      std::copy(all.begin(), all.begin() + bytes, expected.begin() + kGuard);
      for (const bool isTwo : {false, true}) {
        Bytes c = before;
        Bytes also = before;
        also.insert(also.begin(), 0xa5);  // of another alignment
        kernel()(c.data() + kGuard, a.data(), b.data(), elements,
                 isTwo ? also.data() + 1 + kGuard : nullptr);
        ASSERT_TRUE(c == expected) << name << ": " << elements << " elements";
        also.erase(also.begin());
        ASSERT_TRUE(also == (isTwo ? expected : before))
            << name << ": " << elements << " elements";
      }
    }
  });
}

TEST_P(Kernels, TheResultMayBeEitherOperand) {
  constexpr size_t kElements = 3001;
  const Bytes a = randomBytes(GetParam().type, kElements * step(), 5);
  const Bytes b = randomBytes(GetParam().type, kElements * step(), 6);
  const Bytes expected = expectedFor(GetParam(), a, b);
  const Bytes twice = expectedFor(GetParam(), a, a);
  forEachTarget([&](const std::string& name) {
    Bytes left = a, right = b, both = a;
    kernel()(left.data(), left.data(), b.data(), kElements, nullptr);
    kernel()(right.data(), a.data(), right.data(), kElements, nullptr);
    kernel()(both.data(), both.data(), both.data(), kElements, nullptr);
    EXPECT_TRUE(left == expected) << name;
    EXPECT_TRUE(right == expected) << name;
    EXPECT_TRUE(both == twice) << name;
  });
}

TEST_P(Kernels, BothResultsMayBeTheOperands) {
  constexpr size_t kElements = 3001;
  const Bytes a = randomBytes(GetParam().type, kElements * step(), 11);
  const Bytes b = randomBytes(GetParam().type, kElements * step(), 12);
  const Bytes expected = expectedFor(GetParam(), a, b);
  forEachTarget([&](const std::string& name) {
    for (const bool swapped : {false, true}) {
      Bytes left = a, right = b;
      kernel()(swapped ? right.data() : left.data(), left.data(), right.data(),
               kElements, swapped ? left.data() : right.data());
      EXPECT_TRUE(left == expected) << name;
      EXPECT_TRUE(right == expected) << name;
    }
    for (Bytes result : {a, b}) {  // one of them
      Bytes elsewhere(a.size());
      const bool isLeft = result == a;
      kernel()(result.data(), isLeft ? result.data() : a.data(),
               isLeft ? b.data() : result.data(), kElements, elsewhere.data());
      EXPECT_TRUE(result == expected) << name;
      EXPECT_TRUE(elsewhere == expected) << name;
    }
  });
}

TEST_P(Kernels, AnyAlignmentWorks) {
  constexpr size_t kElements = 2003;
  const Bytes a = randomBytes(GetParam().type, kElements * step(), 7);
  const Bytes b = randomBytes(GetParam().type, kElements * step(), 8);
  const Bytes expected = expectedFor(GetParam(), a, b);
  forEachTarget([&](const std::string& name) {
    for (size_t shift = 0; shift < 67; shift += shift < 17 ? 1 : 5) {
      Bytes left(shift), right(shift + 3), c(a.size() + shift + 1);
      left.insert(left.end(), a.begin(), a.end());
      right.insert(right.end(), b.begin(), b.end());
      kernel()(c.data() + shift, left.data() + shift, right.data() + shift + 3,
               kElements, nullptr);
      ASSERT_EQ(std::memcmp(c.data() + shift, expected.data(), a.size()), 0)
          << name << ": " << shift << " bytes";
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(allCases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(nameOf(info.param.type)) + "_" +
                                  nameOf(info.param.reduction);
                         });

TEST(KernelTable, ComplexNumbersHaveNoOrder) {
  EXPECT_EQ(kernelFor(ElementType::kComplex64, Reduction::kMin), nullptr);
  EXPECT_EQ(kernelFor(ElementType::kComplex128, Reduction::kMax), nullptr);
}

TEST(KernelTable, UnknownTypesAndReductionsHaveNoKernel) {
  EXPECT_EQ(kernelFor(ElementType::kUnknown, Reduction::kSum), nullptr);
  EXPECT_EQ(kernelFor(ElementType::kFloat32, Reduction::kUnknown), nullptr);
  EXPECT_EQ(kernelFor(ElementType::kFloat32, Reduction::kCustom), nullptr);
  EXPECT_EQ(kernelFor(static_cast<ElementType>(31), Reduction::kSum), nullptr);
}

TEST(KernelTable, FourteenTypesWithFourReductionsButForComplex) {
  EXPECT_EQ(allCases().size(), 12u * 4 + 2u * 2);
}

TEST(KernelTable, AverageIsTheSumUntilItIsDivided) {
  EXPECT_EQ(kernelFor(ElementType::kFloat64, Reduction::kAverage),
            kernelFor(ElementType::kFloat64, Reduction::kSum));
}

TEST(Exchange, MovesOutWhatLayThereAndInWhatIsNew) {
  constexpr size_t kMost = 700;
  constexpr size_t kGuard = 128;
  const Bytes was = randomBytes(ElementType::kUint8, kMost, 1);
  const Bytes in = randomBytes(ElementType::kUint8, kMost, 2);
  forEachTarget([&](const std::string& name) {
    for (size_t bytes = 0; bytes <= kMost; bytes++) {
      const auto count = static_cast<std::ptrdiff_t>(bytes);
      const auto guarded = [&](const Bytes& what) {
        Bytes all(bytes + 2 * kGuard, 0xa5);
        std::copy(what.begin(), what.begin() + count, all.begin() + kGuard);
        return all;
      };
      Bytes out(bytes + 2 * kGuard, 0xa5);
      Bytes place = guarded(was);
      exchangeKernel()(reinterpret_cast<char*>(out.data() + kGuard),
                       reinterpret_cast<char*>(place.data() + kGuard),
                       reinterpret_cast<const char*>(in.data()), bytes);
      ASSERT_TRUE(out == guarded(was)) << name << ": " << bytes;
      ASSERT_TRUE(place == guarded(in)) << name << ": " << bytes;
    }
  });
}

TEST(DivideKernel, FloatsAndDoublesAreDividedCorrectlyRounded) {
  forEachTarget([](const std::string& name) {
    std::vector<float> floats(100);
    std::vector<double> doubles(100);
    for (int i = 0; i < 100; i++) {
      floats[i] = static_cast<float>(i);
      doubles[i] = i;
    }
    divideKernelFor(ElementType::kFloat32)(floats.data(), 100, 3);
    divideKernelFor(ElementType::kComplex128)(doubles.data(), 50, 7);
    for (int i = 0; i < 100; i++) {
      EXPECT_EQ(floats[i], static_cast<float>(i) / 3.0f) << name;
      EXPECT_EQ(doubles[i], i / 7.0) << name;
    }
  });
}

TEST(DivideKernel, IntegersHaveNone) {
  EXPECT_EQ(divideKernelFor(ElementType::kInt32), nullptr);
  EXPECT_EQ(divideKernelFor(ElementType::kUint8), nullptr);
  EXPECT_EQ(divideKernelFor(ElementType::kUnknown), nullptr);
}

}  // namespace
