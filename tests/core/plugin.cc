// A library of somebody else, compiled with -fvisibility=hidden and loaded
// RTLD_LOCAL, that hands out functions for a collective.
#include <cstring>
#include <functional>

#include "gloo/math.h"

using Function = std::function<void(void*, const void*, const void*, size_t)>;
using Pointer = void (*)(void*, const void*, const void*, size_t);

namespace {

// Needs only what a reduction needs; no operator of a built-in type.
struct Mine {
  int value;
  Mine operator+(const Mine& other) const { return {value + other.value}; }
};

template <typename T>
Function sumOf() {
  const Pointer pointer = &gloo::sum<T>;
  return pointer;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void makeFunction(
    const char* name, Function* result) {
  if (std::strcmp(name, "sum<float>") == 0) {
    *result = sumOf<float>();
  } else if (std::strcmp(name, "sum<int64_t>") == 0) {
    *result = sumOf<int64_t>();
  } else if (std::strcmp(name, "max<float16>") == 0) {
    *result = static_cast<Pointer>(&gloo::max<gloo::float16>);
  } else if (std::strcmp(name, "product<complex>") == 0) {
    *result = static_cast<Pointer>(&gloo::product<std::complex<double>>);
  } else if (std::strcmp(name, "sum<Mine>") == 0) {
    *result = sumOf<Mine>();
  } else if (std::strcmp(name, "lambda") == 0) {
    *result = [](void* c, const void* a, const void* b, size_t n) {
      gloo::sum<float>(c, a, b, n);
    };
  }
}
