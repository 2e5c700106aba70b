// What a peer needs to know to connect to a pair or a context.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

// Immutable; thread-safe. Owned by the pair that returned it.
class GLOO_API Address {
 public:
  // No transport's address is longer, in bytes.
  static constexpr size_t kMaxByteSize = 192;

  virtual ~Address() = 0;

  // For people: host, port and the like.
  virtual std::string str() const = 0;

  // For the peer: the versioned little-endian form that connect() takes.
  virtual std::vector<char> bytes() const = 0;
};

}  // namespace transport
GLOO_NAMESPACE_END
