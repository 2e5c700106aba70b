// What one writes without thinking of vectors: the element type's own
// operators. The build switches vectorisation off for this file.
#include "benchmarks/micro/measure.h"
#include "gloo/types.h"

namespace gloo::micro {
namespace {

using internal::ElementType;
using internal::Reduction;

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a * b);
  }
};
struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Most {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <typename T, typename Operation>
void loop(void* c, const void* a, const void* b, size_t elements) {
  auto* result = static_cast<T*>(c);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (size_t i = 0; i < elements; i++) {
    result[i] = Operation()(left[i], right[i]);
  }
}

template <typename T>
Loop loopFor(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return &loop<T, Add>;
    case Reduction::kProduct:
      return &loop<T, Multiply>;
    case Reduction::kMin:
      return &loop<T, Least>;
    default:
      return &loop<T, Most>;
  }
}

}  // namespace

Loop scalarLoop(ElementType type, Reduction reduction) {
  switch (type) {
    case ElementType::kFloat16:
      return loopFor<float16>(reduction);
    case ElementType::kBfloat16:
      return loopFor<bfloat16>(reduction);
    case ElementType::kFloat32:
      return loopFor<float>(reduction);
    case ElementType::kFloat64:
      return loopFor<double>(reduction);
    case ElementType::kInt8:
      return loopFor<int8_t>(reduction);
    case ElementType::kUint8:
      return loopFor<uint8_t>(reduction);
    case ElementType::kInt16:
      return loopFor<int16_t>(reduction);
    case ElementType::kUint32:
      return loopFor<uint32_t>(reduction);
    default:
      return nullptr;
  }
}

}  // namespace gloo::micro
