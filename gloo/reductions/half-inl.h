// What float16 and bfloat16 have in common, once per dispatch target: minimum
// and maximum by integer comparison of the bits, and the list of kernels. A
// format F has
//   kInfinity      the bits of infinity
//   Tag            the Highway tag (of uint16_t) that F::compute works on
//   compute(d, operation, a, b)        operation in float, rounded once
//   toFloat(bits), fromFloat(value)    the same for one value

// Included once per target: foreach_target.h toggles HWY_TARGET_TOGGLE.
#if defined(GLOO_REDUCTIONS_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOO_REDUCTIONS_HALF_INL_H_
#undef GLOO_REDUCTIONS_HALF_INL_H_
#else
#define GLOO_REDUCTIONS_HALF_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "gloo/config.h"
#include "gloo/reductions/find.h"
#include "gloo/reductions/loop-inl.h"

HWY_BEFORE_NAMESPACE();
GLOO_NAMESPACE_BEGIN
namespace reductions {
namespace HWY_NAMESPACE {
namespace half {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline float canonical(float value) { return value == value ? value : kNan; }

#if HWY_TARGET != HWY_SCALAR
template <class D, class V>
HWY_INLINE V canonical(D d, V value) {
  return hn::IfThenElse(hn::IsNaN(value), hn::Set(d, kNan), value);
}
#endif

struct Add {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};

struct Multiply {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return a * b;
  }
};

struct DivideBy {
#if HWY_TARGET != HWY_SCALAR
  template <class V>
  HWY_INLINE V operator()(V a, V) const {
    return a / hn::Set(hn::DFromV<V>(), divisor);
  }
#endif
  float operator()(float a, float) const { return a / divisor; }

  float divisor = 1;
};

template <class F, class Arithmetic>
struct Computed {
  static constexpr size_t kGroup = 1;
  using Tag = typename F::Tag;
  template <class D, class V>
  HWY_INLINE V vector(D d, V a, V b) const {
    return F::compute(d, arithmetic, a, b);
  }
  void scalar(uint16_t* a, const uint16_t* b) const {
    const float value = arithmetic(F::toFloat(*a), F::toFloat(*b));
    *a = F::fromFloat(canonical(value));
  }

  Arithmetic arithmetic = {};
};

// Two's complement numbers in the order of the values, -0 below +0; applied
// twice, the bits again.
inline int16_t orderedBits(uint16_t bits) {
  return static_cast<int16_t>(bits ^ (bits & 0x8000 ? 0x7fff : 0));
}

template <class F, bool kMax>
struct Extreme {
  static constexpr size_t kGroup = 1;
  using Tag = hn::ScalableTag<uint16_t>;
  static constexpr uint16_t kQuietNan = F::kInfinity | (F::kInfinity >> 1);

#if HWY_TARGET != HWY_SCALAR
  template <class D, class V>
  HWY_INLINE V vector(D d, V a, V b) const {
    const hn::RebindToSigned<D> ds;
    const auto magnitude = hn::Set(ds, 0x7fff);
    const auto infinity = hn::Set(ds, F::kInfinity);
    const auto sa = hn::BitCast(ds, a);
    const auto sb = hn::BitCast(ds, b);
    const auto largest =
        hn::Max(hn::And(sa, magnitude), hn::And(sb, magnitude));
    const auto ka = hn::Xor(sa, hn::And(hn::ShiftRight<15>(sa), magnitude));
    const auto kb = hn::Xor(sb, hn::And(hn::ShiftRight<15>(sb), magnitude));
    const auto key = kMax ? hn::Max(ka, kb) : hn::Min(ka, kb);
    const auto bits = hn::Xor(key, hn::And(hn::ShiftRight<15>(key), magnitude));
    const auto result =
        hn::IfThenElse(hn::Gt(largest, infinity), hn::Set(ds, kQuietNan), bits);
    return hn::BitCast(d, result);
  }
#endif
  void scalar(uint16_t* a, const uint16_t* b) const {
    if ((*a & 0x7fff) > F::kInfinity || (*b & 0x7fff) > F::kInfinity) {
      *a = kQuietNan;
    } else if ((orderedBits(*a) < orderedBits(*b)) == kMax) {
      *a = *b;
    }
  }
};

template <class F>
Kernel findKernel(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kAverage:
      return &reduce<Computed<F, Add>>;
    case Reduction::kProduct:
      return &reduce<Computed<F, Multiply>>;
    case Reduction::kMin:
      return &reduce<Extreme<F, false>>;
    case Reduction::kMax:
      return &reduce<Extreme<F, true>>;
    default:
      return nullptr;
  }
}

template <class F>
void divide(void* data, size_t elements, size_t divisor) {
  Computed<F, DivideBy> operation;
  operation.arithmetic.divisor = static_cast<float>(divisor);
  auto* values = static_cast<uint16_t*>(data);
  transform(operation, OnePlace<uint16_t>{values}, values, values, elements);
}

}  // namespace half
}  // namespace HWY_NAMESPACE
}  // namespace reductions
GLOO_NAMESPACE_END
HWY_AFTER_NAMESPACE();

#endif
