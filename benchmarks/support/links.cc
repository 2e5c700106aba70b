#include "benchmarks/support/links.h"

#include <algorithm>

#include "gloo/internal/channel.h"

namespace support {

std::vector<std::string> MeasuredContext::links() {
  std::vector<std::string> kinds;
  if (size == 1) {
    return kinds;
  }
  auto& channel = gloo::internal::Channel::of(*transportContext_);
  for (int peer = 0; peer < size; peer++) {
    if (peer == rank) {
      continue;
    }
    const std::string kind = channel.linkName(peer);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

std::string join(const std::vector<std::string>& parts, char separator) {
  std::string text;
  for (const auto& part : parts) {
    if (!text.empty()) {
      text += separator;
    }
    text += part;
  }
  return text;
}

}  // namespace support
