// Sums and products wrap around, so that signed types share the kernels of
// unsigned ones.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloo/reductions/integer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloo/reductions/find.h"
#include "gloo/reductions/loop-inl.h"

HWY_BEFORE_NAMESPACE();
GLOO_NAMESPACE_BEGIN
namespace reductions {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR
template <class D, class V>
HWY_INLINE V multiply(hwy::SizeTag<2>, D, V a, V b) {
  return a * b;
}
template <class D, class V>
HWY_INLINE V multiply(hwy::SizeTag<4>, D, V a, V b) {
  return a * b;
}

// Two products of 16 bits for each pair: of the low bytes, and of the high
// bytes with one factor left in place, so that its product is in place too.
template <class D, class V>
HWY_INLINE V multiply(hwy::SizeTag<1>, D d, V a, V b) {
  const hn::Repartition<uint16_t, D> d16;
  const auto low = hn::Set(d16, 0x00ff);
  const auto a16 = hn::BitCast(d16, a);
  const auto b16 = hn::BitCast(d16, b);
  const auto even = hn::And(a16 * b16, low);
  const auto odd = hn::ShiftRight<8>(a16) * hn::AndNot(low, b16);
  return hn::BitCast(d, hn::Or(even, odd));
}

template <class D, class V>
HWY_INLINE V multiply(hwy::SizeTag<8>, D d, V a, V b) {
// (Of x86's targets, the better ones have the lower numbers.)
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_TARGET == HWY_EMU128
  (void)d;
  return a * b;
#else
  // With halves: low * low + (low * high + high * low) * 2^32.
  const hn::Repartition<uint32_t, D> d32;
  const auto a32 = hn::BitCast(d32, a);
  const auto b32 = hn::BitCast(d32, b);
  const auto cross = hn::BitCast(d, a32 * hn::Shuffle2301(b32));
  const auto high = hn::Set(d, uint64_t{0xffffffff} << 32);
  const auto upper = hn::ShiftLeft<32>(cross) + hn::And(cross, high);
  return hn::MulEven(a32, b32) + upper;
#endif
}
#endif

template <typename T>
struct Lanes {
  static constexpr size_t kGroup = 1;
  using Tag = hn::ScalableTag<T>;
};

template <typename T>
struct Sum : Lanes<T> {
  template <class D, class V>
  HWY_INLINE V vector(D, V a, V b) const {
    return a + b;
  }
  void scalar(T* a, const T* b) const { *a = static_cast<T>(*a + *b); }
};

template <typename T>
struct Product : Lanes<T> {
  template <class D, class V>
  HWY_INLINE V vector(D d, V a, V b) const {
    return multiply(hwy::SizeTag<sizeof(T)>(), d, a, b);
  }
  // As 64 bits: a product of two uint16_t would overflow int.
  void scalar(T* a, const T* b) const {
    *a = static_cast<T>(uint64_t{*a} * uint64_t{*b});
  }
};

template <typename T>
struct Min : Lanes<T> {
  template <class D, class V>
  HWY_INLINE V vector(D, V a, V b) const {
    return hn::Min(a, b);
  }
  void scalar(T* a, const T* b) const { *a = *b < *a ? *b : *a; }
};

template <typename T>
struct Max : Lanes<T> {
  template <class D, class V>
  HWY_INLINE V vector(D, V a, V b) const {
    return hn::Max(a, b);
  }
  void scalar(T* a, const T* b) const { *a = *a < *b ? *b : *a; }
};

template <typename T>
Kernel findFor(Reduction reduction) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kAverage:
      return &reduce<Sum<Unsigned>>;
    case Reduction::kProduct:
      return &reduce<Product<Unsigned>>;
    case Reduction::kMin:
      return &reduce<Min<T>>;
    case Reduction::kMax:
      return &reduce<Max<T>>;
    default:
      return nullptr;
  }
}

Kernel find(ElementType type, Reduction reduction) {
  switch (type) {
    case ElementType::kInt8:
      return findFor<int8_t>(reduction);
    case ElementType::kUint8:
      return findFor<uint8_t>(reduction);
    case ElementType::kInt16:
      return findFor<int16_t>(reduction);
    case ElementType::kUint16:
      return findFor<uint16_t>(reduction);
    case ElementType::kInt32:
      return findFor<int32_t>(reduction);
    case ElementType::kUint32:
      return findFor<uint32_t>(reduction);
    case ElementType::kInt64:
      return findFor<int64_t>(reduction);
    case ElementType::kUint64:
      return findFor<uint64_t>(reduction);
    default:
      return nullptr;
  }
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

Kernel findIntegerKernel(ElementType type, Reduction reduction) {
  return HWY_DYNAMIC_DISPATCH(find)(type, reduction);
}

}  // namespace reductions
GLOO_NAMESPACE_END
#endif
