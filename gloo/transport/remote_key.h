// Names a region of another rank's memory for put and get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

// What other ranks may do with exported memory.
enum class RemoteAccess : uint8_t {
  kRead = 1,   // get
  kWrite = 2,  // put
  kReadWrite = 3,
};

// Immutable; thread-safe. Valid while the UnboundBuffer it came from lives;
// afterwards a put or get that uses it fails, without touching any memory.
class GLOO_API RemoteKey {
 public:
  RemoteKey(int rank, size_t size) : rank(rank), size(size) {}
  virtual ~RemoteKey() = 0;

  const int rank;     // whose memory it is
  const size_t size;  // of the region, in bytes

  // The form that Context::deserializeRemoteKey of any rank takes.
  virtual std::string serialize() const = 0;
};

}  // namespace transport
GLOO_NAMESPACE_END
