// Hashes of 64 bits; not for adversaries.
#pragma once

#include <cstdint>
#include <string_view>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// FNV-1a (Fowler, Noll, Vo) over bytes.
constexpr uint64_t kFnvBasis = 0xcbf29ce484222325;
inline uint64_t fnv1a(std::string_view bytes, uint64_t state = kFnvBasis) {
  for (const char c : bytes) {
    state = (state ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return state;
}

// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): each bit of
// the result depends on all bits.
inline uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace internal
GLOO_NAMESPACE_END
