#include "rendezvous/file_names.h"

#include <cstdint>
#include <cstdio>

#include "gloo/internal/hash.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

constexpr char kPlain[] = "key-";
constexpr char kHashed[] = "long-";
constexpr size_t kMaxEncoded = 130;  // eCryptfs allows 143 bytes, others 255
constexpr size_t kKept = 60;

bool isPlain(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

// FNV-1a, with a seed of the caller's.
uint64_t hash(const std::string& key, uint64_t state) {
  state = internal::fnv1a(key, state);
  return state ^ (state >> 29);
}

}  // namespace

std::string fileNameOfKey(const std::string& key) {
  std::string encoded;
  char text[40];
  for (const unsigned char c : key) {
    if (isPlain(c)) {
      encoded += static_cast<char>(c);
    } else {
      std::snprintf(text, sizeof text, "%%%02X", c);
      encoded += text;
    }
  }
  if (encoded.size() <= kMaxEncoded) {
    return kPlain + encoded;
  }
  std::snprintf(
      text, sizeof text, "-%016llx%016llx",
      static_cast<unsigned long long>(hash(key, internal::kFnvBasis)),
      static_cast<unsigned long long>(hash(key + "*", 0x9e3779b97f4a7c15U)));
  return kHashed + encoded.substr(0, kKept) + text;
}

bool isKeyFileName(const std::string& name) {
  return name.rfind(kPlain, 0) == 0 || name.rfind(kHashed, 0) == 0;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
