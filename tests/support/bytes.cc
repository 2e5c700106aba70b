#include "tests/support/bytes.h"

GLOO_NAMESPACE_BEGIN
namespace test {

std::string toHex(const std::vector<char>& bytes) {
  static const char* const digits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex += digits[static_cast<uint8_t>(byte) >> 4];
    hex += digits[static_cast<uint8_t>(byte) & 15];
  }
  return hex;
}

std::vector<char> fromHex(const std::string& hex) {
  std::vector<char> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(
        static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<char> pattern(uint64_t seed, size_t bytes) {
  std::vector<char> out(bytes);
  for (size_t i = 0; i < bytes; i++) {
    out[i] = patternByte(seed, i);
  }
  return out;
}

size_t mismatch(uint64_t seed, const char* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    if (data[i] != patternByte(seed, i)) {
      return i;
    }
  }
  return bytes;
}

}  // namespace test
GLOO_NAMESPACE_END
