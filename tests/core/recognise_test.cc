// Which functions the library recognises, wherever their address was taken.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gloo/internal/kernels.h"
#include "gloo/math.h"

namespace {

using gloo::internal::ElementType;
using gloo::internal::KnownReduction;
using gloo::internal::recognise;
using gloo::internal::ReduceFunction;
using gloo::internal::Reduction;
using Pointer = void (*)(void*, const void*, const void*, size_t);

struct Closer {
  void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, Closer>;

// Both plugins at once, each in a scope of its own.
std::vector<Library> loadPlugins() {
  std::vector<Library> plugins;
  std::string paths = GLOO_TEST_PLUGINS;
  paths += ':';
  for (size_t end; (end = paths.find(':')) != std::string::npos;
       paths.erase(0, end + 1)) {
    const std::string path = paths.substr(0, end);
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    plugins.emplace_back(handle);
  }
  return plugins;
}

ReduceFunction functionFrom(const Library& plugin, const char* name) {
  using Maker = void (*)(const char*, ReduceFunction*);
  const auto make =
      reinterpret_cast<Maker>(dlsym(plugin.get(), "makeFunction"));
  ReduceFunction function;
  if (make != nullptr) {
    make(name, &function);
  }
  return function;
}

template <typename T>
void expectRecognised(Pointer pointer, Reduction reduction) {
  const KnownReduction known = recognise(ReduceFunction(pointer));
  EXPECT_EQ(known.type, gloo::internal::elementTypeOf<T>());
  EXPECT_EQ(known.reduction, reduction);
  EXPECT_NE(known.kernel, nullptr);
}

template <typename T>
class RecogniseTest : public testing::Test {};

using BuiltIn = testing::Types<char, signed char, unsigned char, short,
                               unsigned short, int, unsigned int, long,
                               unsigned long, long long, unsigned long long,
                               float, double, gloo::float16, gloo::bfloat16>;
TYPED_TEST_SUITE(RecogniseTest, BuiltIn);

TYPED_TEST(RecogniseTest, AllFourReductionsOfABuiltInTypeAreRecognised) {
  expectRecognised<TypeParam>(&gloo::sum<TypeParam>, Reduction::kSum);
  expectRecognised<TypeParam>(&gloo::product<TypeParam>, Reduction::kProduct);
  expectRecognised<TypeParam>(&gloo::min<TypeParam>, Reduction::kMin);
  expectRecognised<TypeParam>(&gloo::max<TypeParam>, Reduction::kMax);
}

TEST(Recognise, ComplexSumsAndProductsAreRecognised) {
  using Complex = std::complex<float>;
  expectRecognised<Complex>(&gloo::sum<Complex>, Reduction::kSum);
  expectRecognised<Complex>(&gloo::product<Complex>, Reduction::kProduct);
}

// Folded functions (an optimisation of linkers and compilers) would make
// signed and unsigned types the same.
TEST(Recognise, AddressesOfDifferentTypesDiffer) {
  const std::set<Pointer> all{
      &gloo::sum<int8_t>,  &gloo::sum<uint8_t>,  &gloo::sum<int16_t>,
      &gloo::sum<int32_t>, &gloo::sum<uint32_t>, &gloo::sum<int64_t>,
      &gloo::min<int8_t>,  &gloo::min<uint8_t>,  &gloo::min<int64_t>};
  EXPECT_EQ(all.size(), 9u);
}

TEST(Recognise, FunctionsFromTwoPluginsAreRecognised) {
  const auto plugins = loadPlugins();
  ASSERT_EQ(plugins.size(), 2u);
  for (const Library& plugin : plugins) {
    const auto sumFloat = recognise(functionFrom(plugin, "sum<float>"));
    EXPECT_EQ(sumFloat.type, ElementType::kFloat32);
    EXPECT_EQ(sumFloat.reduction, Reduction::kSum);
    const auto sumLong = recognise(functionFrom(plugin, "sum<int64_t>"));
    EXPECT_EQ(sumLong.type, ElementType::kInt64);
    const auto maxHalf = recognise(functionFrom(plugin, "max<float16>"));
    EXPECT_EQ(maxHalf.type, ElementType::kFloat16);
    EXPECT_EQ(maxHalf.reduction, Reduction::kMax);
    const auto complex = recognise(functionFrom(plugin, "product<complex>"));
    EXPECT_EQ(complex.type, ElementType::kComplex128);
    EXPECT_EQ(complex.reduction, Reduction::kProduct);
  }
}

TEST(Recognise, AForeignTypeOfAPluginIsCustomAndWorks) {
  const auto plugins = loadPlugins();
  const auto function = functionFrom(plugins.at(0), "sum<Mine>");
  const auto known = recognise(function);
  EXPECT_EQ(known.reduction, Reduction::kCustom);
  EXPECT_EQ(known.kernel, nullptr);
  const int a[] = {1, 2}, b[] = {10, 20};
  int c[2] = {};
  function(c, a, b, 2);
  EXPECT_EQ(c[0], 11);
  EXPECT_EQ(c[1], 22);
}

TEST(Recognise, ALambdaIsCustomAndWorks) {
  const auto plugins = loadPlugins();
  const auto function = functionFrom(plugins.at(1), "lambda");
  EXPECT_EQ(recognise(function).reduction, Reduction::kCustom);
  const float a = 1, b = 2;
  float c = 0;
  function(&c, &a, &b, 1);
  EXPECT_EQ(c, 3);
}

// One that was recognised is remembered, and not for another.
TEST(Recognise, FunctionsInTurnAreNotTakenForEachOther) {
  const Pointer mine = [](void*, const void*, const void*, size_t) {};
  for (int i = 0; i < 3; i++) {
    expectRecognised<float>(&gloo::sum<float>, Reduction::kSum);
    expectRecognised<float>(&gloo::sum<float>, Reduction::kSum);
    EXPECT_EQ(recognise(ReduceFunction(mine)).reduction, Reduction::kCustom);
    expectRecognised<int>(&gloo::max<int>, Reduction::kMax);
  }
}

TEST(Recognise, AnEmptyFunctionIsUnknown) {
  const auto known = recognise(ReduceFunction());
  EXPECT_EQ(known.reduction, Reduction::kUnknown);
  EXPECT_EQ(known.kernel, nullptr);
}

void unrelated(void*, const void*, const void*, size_t) {}

TEST(Recognise, AnotherFunctionOfTheSameSignatureIsCustom) {
  EXPECT_EQ(recognise(ReduceFunction(&unrelated)).reduction,
            Reduction::kCustom);
}

}  // namespace
