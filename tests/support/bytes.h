// Bytes as text, and contents of messages that tell where they came from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

std::string toHex(const std::vector<char>& bytes);
std::vector<char> fromHex(const std::string& hex);

// Byte i of message `seed`. Differs between seeds at nearly every i, and has no
// short period: a shifted or repeated block is seen.
inline char patternByte(uint64_t seed, uint64_t i) {
  const uint64_t x = (i + seed * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  return static_cast<char>(x >> 56);
}

std::vector<char> pattern(uint64_t seed, size_t bytes);

// The first place where [data, data + bytes) is not pattern(seed), or `bytes`.
size_t mismatch(uint64_t seed, const char* data, size_t bytes);

}  // namespace test
GLOO_NAMESPACE_END
