// A little tensor: elements whose type is known only at run time, as in a
// framework, and the switch that goes from the type to a template.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "gloo/math.h"
#include "gloo/types.h"

enum class Type { kFloat, kDouble, kHalf, kInt8, kUint8, kInt32, kInt64 };
enum class Op { kSum, kProduct, kMin, kMax, kBitAnd };

// Calls function(T*) with a null pointer of the type's T.
template <typename Function>
auto dispatch(Type type, Function&& function) {
  switch (type) {
    case Type::kFloat:
      return function(static_cast<float*>(nullptr));
    case Type::kDouble:
      return function(static_cast<double*>(nullptr));
    case Type::kHalf:
      return function(static_cast<gloo::float16*>(nullptr));
    case Type::kInt8:
      return function(static_cast<int8_t*>(nullptr));
    case Type::kUint8:
      return function(static_cast<uint8_t*>(nullptr));
    case Type::kInt32:
      return function(static_cast<int32_t*>(nullptr));
    case Type::kInt64:
      return function(static_cast<int64_t*>(nullptr));
  }
  throw std::invalid_argument("no such type");
}

struct Tensor {
  Tensor(Type elementType, size_t n) : type(elementType), elements(n) {
    dispatch(type, [&](auto* null) { bytes.resize(n * sizeof(*null)); });
  }

  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }

  void set(size_t i, int value) {
    dispatch(type, [&](auto* null) {
      using T = std::remove_reference_t<decltype(*null)>;
      data<T>()[i] = T(value);
    });
  }

  bool equals(size_t i, int value) {
    return dispatch(type, [&](auto* null) {
      using T = std::remove_reference_t<decltype(*null)>;
      return data<T>()[i] == T(value);
    });
  }

  void fill(int value) {
    for (size_t i = 0; i < elements; i++) {
      set(i, value);
    }
  }

  bool allEqual(int value) {
    for (size_t i = 0; i < elements; i++) {
      if (!equals(i, value)) {
        return false;
      }
    }
    return true;
  }

  const Type type;
  const size_t elements;
  std::vector<char> bytes;
};

// The pointer type through which frameworks pass reductions: which of the
// overloads of gloo::sum<T> is meant, follows from it.
using ReducePointer = void (*)(void*, const void*, const void*, size_t);

template <typename T>
void bitAnd(void* c, const void* a, const void* b, size_t n) {
  auto* out = static_cast<T*>(c);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  for (size_t i = 0; i < n; i++) {
    out[i] = x[i] & y[i];
  }
}

template <typename T>
ReducePointer reducePointer(Op op) {
  switch (op) {
    case Op::kSum:
      return ReducePointer(&::gloo::sum<T>);
    case Op::kProduct:
      return ReducePointer(&::gloo::product<T>);
    case Op::kMin:
      return ReducePointer(&::gloo::min<T>);
    case Op::kMax:
      return ReducePointer(&::gloo::max<T>);
    case Op::kBitAnd:
      if constexpr (std::is_integral_v<T>) {
        return ReducePointer(&bitAnd<T>);
      }
  }
  throw std::invalid_argument("no such reduction for this type");
}
