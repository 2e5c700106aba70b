// Integers in foreign bytes: little-endian, wherever they lie.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

template <typename T>
T swapIfBig(T value) {
  if constexpr (std::endian::native == std::endian::big && sizeof(T) > 1) {
    auto bytes = std::bit_cast<std::array<uint8_t, sizeof(T)>>(value);
    std::reverse(bytes.begin(), bytes.end());
    return std::bit_cast<T>(bytes);
  }
  return value;
}

template <typename T>
void store(char* out, T value) {
  value = swapIfBig(value);
  std::memcpy(out, &value, sizeof(value));
}

template <typename T>
T load(const char* in) {
  T value;
  std::memcpy(&value, in, sizeof(value));
  return swapIfBig(value);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
