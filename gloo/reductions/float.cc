// float, double and complex. Every NaN that comes out is the same one: which
// operand's payload an addition passes on depends on how the compiler ordered
// the operands, and the sign of a new NaN on the processor.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloo/reductions/float.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "gloo/reductions/find.h"
#include "gloo/reductions/loop-inl.h"

HWY_BEFORE_NAMESPACE();
GLOO_NAMESPACE_BEGIN
namespace reductions {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <typename T>
T canonical(T value) {
  return value == value ? value : kNan<T>;
}

#if HWY_TARGET != HWY_SCALAR
template <class D, class V>
HWY_INLINE V canonical(D d, V value) {
  return hn::IfThenElse(hn::IsNaN(value), hn::Set(d, kNan<hn::TFromD<D>>),
                        value);
}

template <class D, class V>
HWY_INLINE V unlessNan(D d, V a, V b, V value) {
  const auto nan = hn::Or(hn::IsNaN(a), hn::IsNaN(b));
  return hn::IfThenElse(nan, hn::Set(d, kNan<hn::TFromD<D>>), value);
}

// Four at a time, and as integers where there is a maximum of these: to compare
// each number with itself costs as much as the arithmetic.
template <class D, class V>
HWY_INLINE bool noneIsNan(D d, V r0, V r1, V r2, V r3) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(int32_t)) {
    const hn::RebindToSigned<D> di;
    const auto greatest = hn::Max(
        hn::Max(hn::BitCast(di, hn::Abs(r0)), hn::BitCast(di, hn::Abs(r1))),
        hn::Max(hn::BitCast(di, hn::Abs(r2)), hn::BitCast(di, hn::Abs(r3))));
    return hn::AllFalse(di, greatest > hn::BitCast(di, hn::Inf(d)));
  } else {
    return hn::AllFalse(d, hn::Or(hn::Or(hn::IsNaN(r0), hn::IsNaN(r1)),
                                  hn::Or(hn::IsNaN(r2), hn::IsNaN(r3))));
  }
}

// (ar br - ai bi, ar bi + ai br): minus is plus of the negated product, which
// gives the same bits.
template <class D, class V>
HWY_INLINE V complexProduct(D d, V a, V b, V swapped) {
  using T = hn::TFromD<D>;
  const auto negative = hn::SignBit(d);
  const auto evenSigns = hn::OddEven(hn::Set(d, T{0}), negative);
  const auto cross = hn::Xor(hn::DupOdd(a) * swapped, evenSigns);
  return canonical(d, hn::DupEven(a) * b + cross);
}
template <class D, class V>
HWY_INLINE V swapPairs(hwy::SizeTag<4>, D, V v) {
  return hn::Shuffle2301(v);
}
template <class D, class V>
HWY_INLINE V swapPairs(hwy::SizeTag<8>, D, V v) {
  return hn::Shuffle01(v);
}
#endif

template <typename T>
struct Lanes {
  static constexpr size_t kGroup = 1;
  using Tag = hn::ScalableTag<T>;
};

// Operations that can make a NaN, but seldom do.
template <typename T>
struct Arithmetic : Lanes<T> {
#if HWY_TARGET != HWY_SCALAR
  template <class D, class V>
  HWY_INLINE V corrected(D d, V result) const {
    return canonical(d, result);
  }
  template <class D, class V>
  HWY_INLINE bool good(D d, V r0, V r1, V r2, V r3) const {
    return noneIsNan(d, r0, r1, r2, r3);
  }
#endif
};

template <typename T>
struct Sum : Arithmetic<T> {
  template <class D, class V>
  HWY_INLINE V plain(D, V a, V b) const {
    return a + b;
  }
  void scalar(T* a, const T* b) const { *a = canonical(*a + *b); }
};

template <typename T>
struct Product : Arithmetic<T> {
  template <class D, class V>
  HWY_INLINE V plain(D, V a, V b) const {
    return a * b;
  }
  void scalar(T* a, const T* b) const { *a = canonical(*a * *b); }
};

// Of two zeros the hardware returns one or the other. Both ways round and
// combined, the sign bit of either survives; other numbers are not changed.
template <typename T>
struct Min : Lanes<T> {
  template <class D, class V>
  HWY_INLINE V vector(D d, V a, V b) const {
    return unlessNan(d, a, b, hn::Or(hn::Min(a, b), hn::Min(b, a)));
  }
  void scalar(T* a, const T* b) const {
    const bool less = *b < *a || (*b == *a && std::signbit(*b));
    *a = *a != *a || *b != *b ? kNan<T> : less ? *b : *a;
  }
};

template <typename T>
struct Max : Lanes<T> {
  template <class D, class V>
  HWY_INLINE V vector(D d, V a, V b) const {
    return unlessNan(d, a, b, hn::And(hn::Max(a, b), hn::Max(b, a)));
  }
  void scalar(T* a, const T* b) const {
    const bool more = *a < *b || (*a == *b && std::signbit(*a));
    *a = *a != *a || *b != *b ? kNan<T> : more ? *b : *a;
  }
};

template <typename T>
struct ComplexSum : Sum<T> {
  static constexpr size_t kGroup = 2;
  void scalar(T* a, const T* b) const {
    a[0] = canonical(a[0] + b[0]);
    a[1] = canonical(a[1] + b[1]);
  }
};

template <typename T>
struct ComplexProduct : Lanes<T> {
  static constexpr size_t kGroup = 2;
  template <class D, class V>
  HWY_INLINE V vector(D d, V a, V b) const {
    const auto swapped = swapPairs(hwy::SizeTag<sizeof(T)>(), d, b);
    return complexProduct(d, a, b, swapped);
  }
  void scalar(T* a, const T* b) const {
    const T real = a[0] * b[0] - a[1] * b[1];
    const T imaginary = a[0] * b[1] + a[1] * b[0];
    a[0] = canonical(real);
    a[1] = canonical(imaginary);
  }
};

template <typename T>
struct Divide : Arithmetic<T> {
  template <class D, class V>
  HWY_INLINE V plain(D d, V a, V) const {
    return a / hn::Set(d, divisor);
  }
  void scalar(T* a, const T*) const { *a = canonical(*a / divisor); }

  T divisor = 1;
};

template <typename T, size_t kParts>
void divide(void* data, size_t elements, size_t divisor) {
  Divide<T> operation;
  operation.divisor = static_cast<T>(divisor);
  auto* values = static_cast<T*>(data);
  transform(operation, OnePlace<T>{values}, values, values, elements * kParts);
}

template <typename T>
Kernel findReal(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kAverage:
      return &reduce<Sum<T>>;
    case Reduction::kProduct:
      return &reduce<Product<T>>;
    case Reduction::kMin:
      return &reduce<Min<T>>;
    case Reduction::kMax:
      return &reduce<Max<T>>;
    default:
      return nullptr;
  }
}

template <typename T>
Kernel findComplex(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kAverage:
      return &reduce<ComplexSum<T>>;
    case Reduction::kProduct:
      return &reduce<ComplexProduct<T>>;
    default:
      return nullptr;
  }
}

Kernel find(ElementType type, Reduction reduction) {
  switch (type) {
    case ElementType::kFloat32:
      return findReal<float>(reduction);
    case ElementType::kFloat64:
      return findReal<double>(reduction);
    case ElementType::kComplex64:
      return findComplex<float>(reduction);
    case ElementType::kComplex128:
      return findComplex<double>(reduction);
    default:
      return nullptr;
  }
}

DivideKernel findDivide(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return &divide<float, 1>;
    case ElementType::kFloat64:
      return &divide<double, 1>;
    case ElementType::kComplex64:
      return &divide<float, 2>;
    case ElementType::kComplex128:
      return &divide<double, 2>;
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
HWY_EXPORT(findDivide);

Kernel findFloatKernel(ElementType type, Reduction reduction) {
  return HWY_DYNAMIC_DISPATCH(find)(type, reduction);
}

DivideKernel findFloatDivide(ElementType type) {
  return HWY_DYNAMIC_DISPATCH(findDivide)(type);
}

}  // namespace reductions
GLOO_NAMESPACE_END
#endif
