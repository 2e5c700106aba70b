// Copies of what is most often a few bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gloo/config.h"
#include "gloo/internal/copy.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// As memcpy, whose call takes longer than to copy eight bytes; of no bytes,
// either may be null.
inline void copyBytes(char* to, const char* from, size_t bytes) {
  if (bytes == sizeof(uint64_t)) {
    std::memcpy(to, from, sizeof(uint64_t));
  } else {
    internal::copyCached(to, from, bytes);
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
