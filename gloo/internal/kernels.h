// Which type and reduction a caller's function stands for, and the vectorised
// kernel that does the same. The numbers of both enumerations travel in the
// check words by which ranks notice that they disagree: never renumber.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "gloo/config.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// At most 31: 5 bits of a check word.
enum class ElementType : uint8_t {
  kUnknown = 0,
  kInt8 = 1,
  kUint8 = 2,
  kInt16 = 3,
  kUint16 = 4,
  kInt32 = 5,
  kUint32 = 6,
  kInt64 = 7,
  kUint64 = 8,
  kFloat16 = 9,
  kBfloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kComplex64 = 13,   // std::complex<float>
  kComplex128 = 14,  // std::complex<double>
};
constexpr size_t kElementTypes = 15;

// At most 15: 4 bits of a check word.
enum class Reduction : uint8_t {
  kUnknown = 0,
  kSum = 1,
  kProduct = 2,
  kMin = 3,
  kMax = 4,
  kAverage = 5,  // a sum, divided by how many vectors it is of
  kCustom = 6,   // a function that the library does not know
};
constexpr size_t kReductions = 7;

// For messages: "float32", "sum"; "unknown" for numbers that are none.
GLOO_API const char* nameOf(ElementType type);
GLOO_API const char* nameOf(Reduction reduction);

// 0 for kUnknown.
GLOO_API size_t elementBytes(ElementType type);

// kUnknown for types that have no kernels; bool is one of them.
template <typename T>
constexpr ElementType elementTypeOf() {
  using Type = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Type, float>) {
    return ElementType::kFloat32;
  } else if constexpr (std::is_same_v<Type, double>) {
    return ElementType::kFloat64;
  } else if constexpr (std::is_same_v<Type, float16>) {
    return ElementType::kFloat16;
  } else if constexpr (std::is_same_v<Type, bfloat16>) {
    return ElementType::kBfloat16;
  } else if constexpr (std::is_same_v<Type, std::complex<float>>) {
    return ElementType::kComplex64;
  } else if constexpr (std::is_same_v<Type, std::complex<double>>) {
    return ElementType::kComplex128;
  } else if constexpr (std::is_integral_v<Type> &&
                       !std::is_same_v<Type, bool> && sizeof(Type) <= 8) {
    constexpr int kLog2Bytes = sizeof(Type) == 1   ? 0
                               : sizeof(Type) == 2 ? 1
                               : sizeof(Type) == 4 ? 2
                                                   : 3;
    return static_cast<ElementType>(1 + 2 * kLog2Bytes +
                                    (std::is_unsigned_v<Type> ? 1 : 0));
  } else {
    return ElementType::kUnknown;
  }
}

// Complex numbers have no order, so no minimum and maximum either.
constexpr bool isComplex(ElementType type) {
  return type == ElementType::kComplex64 || type == ElementType::kComplex128;
}

// c[i] = a[i] op b[i] for 0 <= i < elements, and also[i] the same, unless it is
// null: that costs less than to copy c. Each of the two may be equal to a or to
// b, and must not overlap them, nor the other, otherwise. Any alignment.
// Thread-safe.
//
// The bits of the result depend on the operands alone, not on the processor:
// integers wrap around; float16 and bfloat16 are computed as float and rounded
// once, to nearest even; every NaN result is the positive quiet NaN without
// payload; minimum and maximum are NaN if either operand is, and -0 < +0. A
// complex product is (ac - bd) + (ad + bc)i, each operation rounded. The
// calling thread's rounding mode and flushing of subnormals to zero (MXCSR,
// FPCR) count as operands: ranks get the same bits where all have set the same.
using Kernel = void (*)(void* c, const void* a, const void* b, size_t elements,
                        void* also);

// Null if there is none (unknown types; minimum and maximum of complex). The
// kernel of kAverage is that of kSum.
GLOO_API Kernel kernelFor(ElementType type, Reduction reduction);

// out[i] = place[i], and then place[i] = in[i], for 0 <= i < bytes. They do not
// overlap. Less work than two copies where `place` comes from afar.
using ExchangeKernel = void (*)(char* out, char* place, const char* in,
                                size_t bytes);
GLOO_API ExchangeKernel exchangeKernel();

// data[i] /= divisor, rounded like a kernel: the end of an average.
using DivideKernel = void (*)(void* data, size_t elements, size_t divisor);

// Null for integers, whose average is not defined, and unknown types.
GLOO_API DivideKernel divideKernelFor(ElementType type);

// What gloo::average<T> is. Not a function: what is divided, and by what, only
// the collective knows.
struct AverageOf {
  ElementType type;
};

using ReduceFunction =
    std::function<void(void*, const void*, const void*, size_t)>;

struct KnownReduction {
  ElementType type = ElementType::kUnknown;
  Reduction reduction = Reduction::kUnknown;
  // Does what the function does; null: call the function.
  Kernel kernel = nullptr;
};

// What `function` holds: &gloo::sum<T>, product, min or max of a built-in type,
// wherever the caller took the address. Anything else is kCustom without a
// kernel, an empty function kUnknown. Does not call it.
GLOO_API KnownReduction recognise(const ReduceFunction& function);

}  // namespace internal
GLOO_NAMESPACE_END
