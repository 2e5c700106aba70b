// Every collective of the API, called with inputs that follow from rank and
// element, and its result compared with what must come out of them.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/math.h"
#include "gloo/types.h"
#include "tests/support/collective_values.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

using ContextRef = const std::shared_ptr<::gloo::Context>&;

template <typename Options>
Options optionsFor(ContextRef context, const Call& call) {
  struct Named : Options {
    using Options::Options;
    using Options::setAlgorithmName;
  };
  Named opts(context);
  opts.setTag(call.tag);
  opts.setAlgorithmName(call.algorithm);
  return Options(std::move(opts));
}

using Function = void (*)(void*, const void*, const void*, size_t);

// As a function of the caller's may: its operands are elements.
template <typename T>
void sumOfAligned(void* c, const void* a, const void* b, size_t n) {
  for (const void* operand : {const_cast<const void*>(c), a, b}) {
    if (reinterpret_cast<uintptr_t>(operand) % alignof(T) != 0) {
      throw std::runtime_error("an operand is not aligned");
    }
  }
  sum<T>(c, a, b, n);
}

template <typename T>
AllreduceOptions::Func adder() {
  if constexpr (internal::elementTypeOf<T>() ==
                internal::ElementType::kUnknown) {
    return static_cast<Function>(&sumOfAligned<T>);
  }
  return static_cast<Function>(&sum<T>);
}

// Each calls one collective, and says what is wrong with its result.
#define GLOO_TEST_FOR_EACH_CHECK(each, T)                              \
  each(checkAllreduce, T) each(checkReduce, T) each(checkBroadcast, T) \
      each(checkScatter, T) each(checkGather, T) each(checkGatherv, T) \
          each(checkAllgather, T) each(checkAllgatherv, T)             \
              each(checkReduceScatter, T) each(checkReduceScatterv, T) \
                  each(checkAlltoall, T) each(checkAlltoallv, T)
#define GLOO_TEST_DECLARE(check, T) \
  template <typename T>             \
  std::string check(ContextRef context, const Call& call);
GLOO_TEST_FOR_EACH_CHECK(GLOO_TEST_DECLARE, T)
#undef GLOO_TEST_DECLARE

constexpr size_t kChecks = 12;

// The one with this number.
template <typename T>
std::string checkCollective(size_t which, ContextRef context,
                            const Call& call) {
  using Check = std::string (*)(ContextRef, const Call&);
  static constexpr Check kAll[kChecks] = {
      checkAllreduce<T>,      checkReduce<T>,     checkBroadcast<T>,
      checkScatter<T>,        checkGather<T>,     checkGatherv<T>,
      checkAllgather<T>,      checkAllgatherv<T>, checkReduceScatter<T>,
      checkReduceScatterv<T>, checkAlltoall<T>,   checkAlltoallv<T>};
  return kAll[which](context, call);
}

// Of these types they are in the library gloo_test_collectives; for others
// there is collectives/checks.h.
#define GLOO_TEST_FOR_EACH_INTEGER(each)                                \
  each(int8_t) each(uint8_t) each(int16_t) each(uint16_t) each(int32_t) \
      each(uint32_t) each(int64_t) each(uint64_t)
#define GLOO_TEST_FOR_EACH_OTHER_TYPE(each)                             \
  each(float) each(double) each(float16) each(bfloat16)                 \
      each(std::complex<float>) each(std::complex<double>) each(Triple) \
          each(Foreign<8>)
#define GLOO_TEST_IN_LIBRARY(check, T) \
  extern template std::string check<T>(ContextRef, const Call&);
#define GLOO_TEST_ALL_IN_LIBRARY(T) \
  GLOO_TEST_FOR_EACH_CHECK(GLOO_TEST_IN_LIBRARY, T)
GLOO_TEST_FOR_EACH_INTEGER(GLOO_TEST_ALL_IN_LIBRARY)
GLOO_TEST_FOR_EACH_OTHER_TYPE(GLOO_TEST_ALL_IN_LIBRARY)
#undef GLOO_TEST_ALL_IN_LIBRARY
#undef GLOO_TEST_IN_LIBRARY

}  // namespace testing_support
GLOO_NAMESPACE_END
