#include "gloo/internal/kernels.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "gloo/internal/fork.h"
#include "gloo/math.h"
#include "gloo/reductions/find.h"

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

using Function = void (*)(void*, const void*, const void*, size_t);

struct Known {
  Function function;
  ElementType type;
  Reduction reduction;
};

bool before(const Known& a, const Known& b) {
  return std::less<>()(a.function, b.function);
}

template <typename T>
void addSums(std::vector<Known>& all) {
  constexpr ElementType kType = elementTypeOf<T>();
  all.push_back({&sum<T>, kType, Reduction::kSum});
  all.push_back({&product<T>, kType, Reduction::kProduct});
}

template <typename... T>
void addAll(std::vector<Known>& all) {
  (addSums<T>(all), ...);
  (all.push_back({&min<T>, elementTypeOf<T>(), Reduction::kMin}), ...);
  (all.push_back({&max<T>, elementTypeOf<T>(), Reduction::kMax}), ...);
}

// Sorted by address.
const std::vector<Known>& knownFunctions() {
  return madeOnce([] {
    std::vector<Known> all;
    addAll<char, signed char, unsigned char, short, unsigned short, int,
           unsigned int, long, unsigned long, long long, unsigned long long,
           float, double, float16, bfloat16>(all);
    addSums<std::complex<float>>(all);
    addSums<std::complex<double>>(all);
    std::sort(all.begin(), all.end(), before);
    return all;
  });
}

// Null: it is none of ours.
const Known* find(Function function) {
  const auto& known = knownFunctions();
  const Known wanted{function, ElementType::kUnknown, Reduction::kUnknown};
  const auto at = std::lower_bound(known.begin(), known.end(), wanted, before);
  return at != known.end() && at->function == function ? &*at : nullptr;
}

}  // namespace

const char* nameOf(ElementType type) {
  static const char* const names[kElementTypes] = {
      "unknown",  "int8",    "uint8",   "int16",     "uint16",
      "int32",    "uint32",  "int64",   "uint64",    "float16",
      "bfloat16", "float32", "float64", "complex64", "complex128"};
  const auto index = static_cast<size_t>(type);
  return index < kElementTypes ? names[index] : names[0];
}

const char* nameOf(Reduction reduction) {
  static const char* const names[kReductions] = {
      "unknown", "sum", "product", "min", "max", "average", "custom"};
  const auto index = static_cast<size_t>(reduction);
  return index < kReductions ? names[index] : names[0];
}

size_t elementBytes(ElementType type) {
  static constexpr uint8_t bytes[kElementTypes] = {0, 1, 1, 2, 2, 4, 4, 8,
                                                   8, 2, 2, 4, 8, 8, 16};
  const auto index = static_cast<size_t>(type);
  return index < kElementTypes ? bytes[index] : 0;
}

Kernel kernelFor(ElementType type, Reduction reduction) {
  switch (type) {
    case ElementType::kUnknown:
      return nullptr;
    case ElementType::kFloat16:
      return reductions::findFloat16Kernel(type, reduction);
    case ElementType::kBfloat16:
      return reductions::findBfloat16Kernel(type, reduction);
    case ElementType::kFloat32:
    case ElementType::kFloat64:
    case ElementType::kComplex64:
    case ElementType::kComplex128:
      return reductions::findFloatKernel(type, reduction);
    default:
      return reductions::findIntegerKernel(type, reduction);
  }
}

ExchangeKernel exchangeKernel() { return reductions::findExchange(); }

DivideKernel divideKernelFor(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return reductions::findFloat16Divide(type);
    case ElementType::kBfloat16:
      return reductions::findBfloat16Divide(type);
    default:
      return reductions::findFloatDivide(type);
  }
}

KnownReduction recognise(const ReduceFunction& function) {
  if (!function) {
    return {};
  }
  if (const Function* target = function.target<Function>()) {
    // Most programs use one, and many make options for each call.
    static std::atomic<const Known*> last{nullptr};
    const Known* known = last.load(std::memory_order_acquire);
    if (known == nullptr || known->function != *target) {
      known = find(*target);
      if (known != nullptr) {
        last.store(known, std::memory_order_release);
      }
    }
    if (known != nullptr) {
      return {known->type, known->reduction,
              kernelFor(known->type, known->reduction)};
    }
  }
  return {ElementType::kUnknown, Reduction::kCustom, nullptr};
}

}  // namespace internal
GLOO_NAMESPACE_END
