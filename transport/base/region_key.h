// The RemoteKey of all transports: the id of an exported region, and where
// links can write and read directly, its registered address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/transport/remote_key.h"
#include "transport/base/link.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Memory that remote ranks may put to or get from.
struct ExportedRegion {
  char* ptr = nullptr;
  size_t size = 0;
  RemoteAccess access = RemoteAccess::kReadWrite;
  int device = -1;     // of CUDA, whose memory it is
  uint64_t inUse = 0;  // answers to gets that are on their way
  std::unique_ptr<Region> region;
};

inline bool allows(RemoteAccess access, RemoteAccess use) {
  const auto bits = static_cast<unsigned>(use);
  return (static_cast<unsigned>(access) & bits) == bits;
}

class RegionKey final : public RemoteKey {
 public:
  RegionKey(int rank, size_t size, RemoteAccess access, uint64_t nonce,
            uint32_t id, const Region* region);

  // Throws InvalidOperationException when the text is not a key.
  static std::unique_ptr<RegionKey> deserialize(const std::string& text);

  std::string serialize() const override;

  const RemoteAccess access;
  const uint64_t nonce;  // of the context that exported it
  const uint32_t id;
  const uint64_t address;
  const uint32_t key;

 private:
  RegionKey(int rank, size_t size, RemoteAccess access, uint64_t nonce,
            uint32_t id, uint64_t address, uint32_t key);
};

}  // namespace transport::base
GLOO_NAMESPACE_END
