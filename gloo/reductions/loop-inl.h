// The one loop of all kernels, compiled once per dispatch target. An operation
// is a class with
//   kGroup         elements that belong together: 2 for complex numbers
//   Tag            the Highway tag of its vectors
//   vector(d, a, b), scalar(a, b)      equal bits; scalar() serves the target
//                  HWY_SCALAR, whose vectors cannot be reinterpreted
// and may hold state (the divisor of an average). One whose results seldom need
// a correction has instead of vector()
//   plain(d, a, b), corrected(d, r)
//   good(d, r0, r1, r2, r3)            whether plain() is right for these four
// Results go to one place or to two.

// Included once per target: foreach_target.h toggles HWY_TARGET_TOGGLE.
#if defined(GLOO_REDUCTIONS_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOO_REDUCTIONS_LOOP_INL_H_
#undef GLOO_REDUCTIONS_LOOP_INL_H_
#else
#define GLOO_REDUCTIONS_LOOP_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gloo/config.h"
#include "gloo/reductions/find.h"

HWY_BEFORE_NAMESPACE();
GLOO_NAMESPACE_BEGIN
namespace reductions {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Where results go.
template <typename T>
struct OnePlace {
  OnePlace operator+(size_t i) const { return {c + i}; }
  void copy(const T* from, size_t elements) const {
    std::memcpy(c, from, elements * sizeof(T));
  }
#if HWY_TARGET != HWY_SCALAR
  template <class D, class V>
  HWY_INLINE void store(D d, V result) const {
    hn::StoreU(result, d, c);
  }
  template <class D, class V, class M>
  HWY_INLINE void store(D d, V result, M mask) const {
    hn::BlendedStore(result, mask, d, c);
  }
#endif

  T* c;
};

template <typename T>
struct TwoPlaces {
  TwoPlaces operator+(size_t i) const { return {c + i, also + i}; }
  void copy(const T* from, size_t elements) const {
    OnePlace<T>{c}.copy(from, elements);
    OnePlace<T>{also}.copy(from, elements);
  }
#if HWY_TARGET != HWY_SCALAR
  template <class D, class V, class... M>
  HWY_INLINE void store(D d, V result, M... mask) const {
    OnePlace<T>{c}.store(d, result, mask...);
    OnePlace<T>{also}.store(d, result, mask...);
  }
#endif

  T* c;
  T* also;
};

#if HWY_TARGET == HWY_SCALAR

template <class Operation, class Places, typename T>
void transform(const Operation& operation, const Places& places, const T* a,
               const T* b, size_t elements) {
  for (size_t i = 0; i < elements; i += Operation::kGroup) {
    T left[Operation::kGroup];
    T right[Operation::kGroup];
    std::memcpy(left, a + i, sizeof(left));
    std::memcpy(right, b + i, sizeof(right));
    operation.scalar(left, right);
    (places + i).copy(left, Operation::kGroup);
  }
}

#else

template <class Operation, class D, class V>
concept Corrects = requires(const Operation operation, D d, V v) {
  operation.plain(d, v, v);
};

// Perhaps to be corrected.
template <class Operation, class D, class V>
HWY_INLINE V plainOf(const Operation& operation, D d, V a, V b) {
  if constexpr (Corrects<Operation, D, V>) {
    return operation.plain(d, a, b);
  } else {
    return operation.vector(d, a, b);
  }
}

template <class Operation, class D, class V>
HWY_INLINE V apply(const Operation& operation, D d, V a, V b) {
  const V result = plainOf(operation, d, a, b);
  if constexpr (Corrects<Operation, D, V>) {
    if (HWY_UNLIKELY(!operation.good(d, result, result, result, result))) {
      return operation.corrected(d, result);
    }
  }
  return result;
}

// (Of x86's targets, the better ones have the lower numbers.)
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Masked accesses touch no memory outside the mask.
template <class Operation, class D, class Places, typename T>
HWY_INLINE void transformPart(const Operation& operation, D d,
                              const Places& places, const T* a, const T* b,
                              size_t elements) {
  const auto mask = hn::FirstN(d, elements);
  const auto left = hn::MaskedLoad(mask, d, a);
  const auto right = hn::MaskedLoad(mask, d, b);
  places.store(d, apply(operation, d, left, right), mask);
}
#else
template <class Operation, class D, class Places, typename T>
HWY_INLINE void transformPart(const Operation& operation, D d,
                              const Places& places, const T* a, const T* b,
                              size_t elements) {
  HWY_ALIGN T left[hn::MaxLanes(D())] = {};
  HWY_ALIGN T right[hn::MaxLanes(D())] = {};
  std::memcpy(left, a, elements * sizeof(T));
  std::memcpy(right, b, elements * sizeof(T));
  const auto result =
      apply(operation, d, hn::Load(d, left), hn::Load(d, right));
  hn::Store(result, d, left);
  places.copy(left, elements);
}
#endif

// Elements until c is aligned for whole vectors; 0 if it cannot be or is not
// worth it. A store that crosses cache lines costs twice, on every vector.
template <class Operation, typename T>
HWY_INLINE size_t elementsToAlign(const T* c, size_t lanes, size_t elements) {
  const size_t vectorBytes = lanes * sizeof(T);
  const size_t past = reinterpret_cast<uintptr_t>(c) % vectorBytes;
  constexpr size_t kGroupBytes = Operation::kGroup * sizeof(T);
  if (past == 0 || past % kGroupBytes != 0 || elements < 16 * lanes) {
    return 0;
  }
  return (vectorBytes - past) / sizeof(T);
}

// Four at a time: all loads before the first store, because c may be a or b and
// the compiler would have to wait for each store.
template <class Operation, class D, typename T>
HWY_INLINE void transformFour(const Operation& operation, D d, T* c, const T* a,
                              const T* b) {
  const size_t lanes = hn::Lanes(d);
  const auto a0 = hn::LoadU(d, a);
  const auto a1 = hn::LoadU(d, a + lanes);
  const auto a2 = hn::LoadU(d, a + 2 * lanes);
  const auto a3 = hn::LoadU(d, a + 3 * lanes);
  const auto b0 = hn::LoadU(d, b);
  const auto b1 = hn::LoadU(d, b + lanes);
  const auto b2 = hn::LoadU(d, b + 2 * lanes);
  const auto b3 = hn::LoadU(d, b + 3 * lanes);
  auto r0 = plainOf(operation, d, a0, b0);
  auto r1 = plainOf(operation, d, a1, b1);
  auto r2 = plainOf(operation, d, a2, b2);
  auto r3 = plainOf(operation, d, a3, b3);
  if constexpr (Corrects<Operation, D, decltype(r0)>) {
    if (HWY_UNLIKELY(!operation.good(d, r0, r1, r2, r3))) {
      r0 = operation.corrected(d, r0);
      r1 = operation.corrected(d, r1);
      r2 = operation.corrected(d, r2);
      r3 = operation.corrected(d, r3);
    }
  }
  hn::StoreU(r0, d, c);
  hn::StoreU(r1, d, c + lanes);
  hn::StoreU(r2, d, c + 2 * lanes);
  hn::StoreU(r3, d, c + 3 * lanes);
}

template <class Operation, class Places, typename T>
void transform(const Operation& operation, const Places& places, const T* a,
               const T* b, size_t elements) {
  const typename Operation::Tag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = elementsToAlign<Operation>(places.c, lanes, elements);
  if (i > 0) {
    transformPart(operation, d, places, a, b, i);
  }
  // Of the two, one has come from another core: four lines of each at a time
  // take more time than one. Measured with 2 ranks, allreduce of 1 MiB: 89 us,
  // and 85.
  if constexpr (std::is_same_v<Places, OnePlace<T>>) {
    for (; i + 4 * lanes <= elements; i += 4 * lanes) {
      transformFour(operation, d, places.c + i, a + i, b + i);
    }
  }
  for (; i + lanes <= elements; i += lanes) {
    const auto left = hn::LoadU(d, a + i);
    const auto right = hn::LoadU(d, b + i);
    (places + i).store(d, apply(operation, d, left, right));
  }
  if (i < elements) {
    transformPart(operation, d, places + i, a + i, b + i, elements - i);
  }
}

#endif

// As a kernel: `elements` are groups.
template <class Operation>
void reduce(void* c, const void* a, const void* b, size_t elements,
            void* also) {
  using T = hn::TFromD<typename Operation::Tag>;
  const auto* const left = static_cast<const T*>(a);
  const auto* const right = static_cast<const T*>(b);
  const size_t n = elements * Operation::kGroup;
  if (also == nullptr) {
    transform(Operation(), OnePlace<T>{static_cast<T*>(c)}, left, right, n);
  } else {
    const TwoPlaces<T> both{static_cast<T*>(c), static_cast<T*>(also)};
    transform(Operation(), both, left, right, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace reductions
GLOO_NAMESPACE_END
HWY_AFTER_NAMESPACE();

#endif
