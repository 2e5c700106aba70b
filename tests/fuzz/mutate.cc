#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cstddef>

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

void setInteger(std::vector<char>& bytes, size_t at, std::mt19937_64& random) {
  static constexpr std::array<uint64_t, 8> kLimits = {
      0, 1, 0x7f, 0x80, 0xffff, 0x7fffffff, 0xffffffff, ~uint64_t{0}};
  const uint64_t value = kLimits[random() % kLimits.size()];
  const size_t width = size_t{1} << (random() % 4);
  for (size_t i = 0; i < width && at + i < bytes.size(); i++) {
    bytes[at + i] = static_cast<char>(value >> (8 * i));
  }
}

void change(std::vector<char>& bytes, std::mt19937_64& random) {
  const size_t at = bytes.empty() ? 0 : random() % bytes.size();
  const auto there = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (bytes.empty() ? 5 : random() % 6) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2:
      setInteger(bytes, at, random);
      break;
    case 3:
      bytes.erase(there, bytes.end());
      break;
    case 4: {
      const std::vector<char> tail(there, bytes.end());
      bytes.insert(bytes.end(), tail.begin(), tail.end());
      break;
    }
    default:
      bytes.insert(there, 1 + random() % 16, static_cast<char>(random()));
  }
}

}  // namespace

std::vector<char> mutate(std::vector<char> bytes, std::mt19937_64& random) {
  for (uint64_t n = 1 + random() % 4; n > 0; n--) {
    change(bytes, random);
  }
  return bytes;
}

}  // namespace test
GLOO_NAMESPACE_END
