#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloo/reductions/bfloat16.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloo/reductions/find.h"
#include "gloo/reductions/half-inl.h"
#include "gloo/types.h"

HWY_BEFORE_NAMESPACE();
GLOO_NAMESPACE_BEGIN
namespace reductions {
namespace HWY_NAMESPACE {
namespace {

struct Bfloat16 {
  static constexpr uint16_t kInfinity = 0x7f80;
  using Tag = hn::ScalableTag<uint16_t>;

  static float toFloat(uint16_t bits) {
    return half_detail::floatFromBfloat16(bits);
  }
  static uint16_t fromFloat(float value) {
    return half_detail::bfloat16FromFloat(value);
  }

#if HWY_TARGET != HWY_SCALAR
  // To nearest even, in the upper half of each lane; the lower one is garbage.
  // Highway's own DemoteTo truncates.
  template <class DF, class VF>
  static HWY_INLINE auto round(DF df, VF value) {
    const hn::RebindToUnsigned<DF> du;
    const auto bits = hn::BitCast(du, half::canonical(df, value));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    return bits + (odd + hn::Set(du, 0x7fff));
  }

  // A bfloat16 is the upper half of a float, so the odd elements of a vector
  // are floats once the even ones are masked, and the even ones once shifted:
  // nothing crosses lanes.
  template <class D, class Arithmetic, class V>
  static HWY_INLINE V compute(D d, const Arithmetic& arithmetic, V a, V b) {
    const hn::Repartition<uint32_t, D> du;
    const hn::Repartition<float, D> df;
    const auto upper = hn::Set(du, 0xffff0000);
    const auto ua = hn::BitCast(du, a);
    const auto ub = hn::BitCast(du, b);
    const auto even =
        round(df, arithmetic(hn::BitCast(df, hn::ShiftLeft<16>(ua)),
                             hn::BitCast(df, hn::ShiftLeft<16>(ub))));
    const auto odd = round(df, arithmetic(hn::BitCast(df, hn::And(ua, upper)),
                                          hn::BitCast(df, hn::And(ub, upper))));
    return hn::BitCast(d,
                       hn::Or(hn::And(odd, upper), hn::ShiftRight<16>(even)));
  }
#endif
};

Kernel find(ElementType type, Reduction reduction) {
  return type == ElementType::kBfloat16 ? half::findKernel<Bfloat16>(reduction)
                                        : nullptr;
}

DivideKernel findDivide(ElementType type) {
  return type == ElementType::kBfloat16 ? &half::divide<Bfloat16> : nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace reductions
GLOO_NAMESPACE_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
GLOO_NAMESPACE_BEGIN
namespace reductions {

HWY_EXPORT(find);
HWY_EXPORT(findDivide);

Kernel findBfloat16Kernel(ElementType type, Reduction reduction) {
  return HWY_DYNAMIC_DISPATCH(find)(type, reduction);
}

DivideKernel findBfloat16Divide(ElementType type) {
  return HWY_DYNAMIC_DISPATCH(findDivide)(type);
}

}  // namespace reductions
GLOO_NAMESPACE_END
#endif
