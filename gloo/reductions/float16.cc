#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloo/reductions/float16.cc"
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

struct Float16 {
  static constexpr uint16_t kInfinity = 0x7c00;
  using Tag = hn::Rebind<uint16_t, hn::ScalableTag<float>>;

  static float toFloat(uint16_t bits) {
    return half_detail::floatFromFloat16(bits);
  }
  static uint16_t fromFloat(float value) {
    return half_detail::float16FromFloat(value);
  }

// (Of x86's targets, the better ones have the lower numbers.)
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_TARGET == HWY_NEON
  // In hardware: exact, and rounded to nearest even.
  template <class D, class V>
  static HWY_INLINE auto promote(D d, V bits) {
    const hn::Rebind<float, D> df;
    const hn::Rebind<hwy::float16_t, D> dh;
    (void)d;
    return hn::PromoteTo(df, hn::BitCast(dh, bits));
  }
  template <class D, class VF>
  static HWY_INLINE auto demote(D d, VF value) {
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::BitCast(d, hn::DemoteTo(dh, value));
  }
#elif HWY_TARGET != HWY_SCALAR
  // With integers, as gloo/types.cc does for one value: Highway's own DemoteTo
  // truncates on these targets, and its PromoteTo knows no infinity.
  static constexpr uint32_t kSubnormalMagic = 126 << 23;  // 0.5

  template <class D, class V>
  static HWY_INLINE auto promote(D, V bits) {
    const hn::Rebind<float, D> df;
    const hn::Rebind<int32_t, D> di;
    const auto wide = hn::PromoteTo(di, bits);
    const auto magnitude = hn::And(wide, hn::Set(di, 0x7fff));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(wide, magnitude));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto magic = hn::Set(di, kSubnormalMagic);
    const auto subnormal = hn::BitCast(
        di, hn::BitCast(df, magnitude + magic) - hn::BitCast(df, magic));
    const auto normal = shifted + hn::Set(di, 112 << 23);
    const auto special = hn::Or(shifted, hn::Set(di, 0x7f800000));
    const auto finite = hn::IfThenElse(hn::Gt(hn::Set(di, 0x400), magnitude),
                                       subnormal, normal);
    const auto value =
        hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7bff)), special, finite);
    return hn::BitCast(df, hn::Or(value, sign));
  }

  template <class D, class VF>
  static HWY_INLINE auto demote(D d, VF value) {
    const hn::Rebind<float, D> df;
    const hn::Rebind<int32_t, D> di;
    const auto all = hn::BitCast(di, value);
    const auto bits = hn::And(all, hn::Set(di, 0x7fffffff));
    const auto sign = hn::And(hn::ShiftRight<16>(all), hn::Set(di, 0x8000));
    const auto magic = hn::Set(di, kSubnormalMagic);
    const auto subnormal =
        hn::BitCast(di, hn::BitCast(df, bits) + hn::BitCast(df, magic)) - magic;
    const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(di, 1));
    const auto normal =
        hn::ShiftRight<13>(bits + hn::Set(di, 0xfff - (112 << 23)) + odd);
    const auto special =
        hn::IfThenElse(hn::Gt(bits, hn::Set(di, 0x7f800000)),
                       hn::Set(di, 0x7e00), hn::Set(di, 0x7c00));
    const auto finite =
        hn::IfThenElse(hn::Gt(hn::Set(di, 113 << 23), bits), subnormal, normal);
    const auto half = hn::IfThenElse(hn::Gt(bits, hn::Set(di, (143 << 23) - 1)),
                                     special, finite);
    return hn::DemoteTo(d, hn::Or(half, sign));
  }
#endif

#if HWY_TARGET != HWY_SCALAR
  template <class D, class Arithmetic, class V>
  static HWY_INLINE V compute(D d, const Arithmetic& arithmetic, V a, V b) {
    const hn::Rebind<float, D> df;
    const auto value = arithmetic(promote(d, a), promote(d, b));
    return demote(d, half::canonical(df, value));
  }
#endif
};

Kernel find(ElementType type, Reduction reduction) {
  return type == ElementType::kFloat16 ? half::findKernel<Float16>(reduction)
                                       : nullptr;
}

DivideKernel findDivide(ElementType type) {
  return type == ElementType::kFloat16 ? &half::divide<Float16> : nullptr;
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

Kernel findFloat16Kernel(ElementType type, Reduction reduction) {
  return HWY_DYNAMIC_DISPATCH(find)(type, reduction);
}

DivideKernel findFloat16Divide(ElementType type) {
  return HWY_DYNAMIC_DISPATCH(findDivide)(type);
}

}  // namespace reductions
GLOO_NAMESPACE_END
#endif
