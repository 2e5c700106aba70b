#include "transport/base/region_key.h"

#include "gloo/common/logging.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

// "gloo-key-1" rank size nonce id address key crc, in hexadecimal.
constexpr const char* kPrefix = "gloo-key-1";

std::string fields(int rank, size_t size, uint64_t nonce, uint32_t id,
                   uint64_t address, uint32_t key) {
  std::ostringstream out;
  out << kPrefix << std::hex << ' ' << rank << ' ' << size << ' ' << nonce
      << ' ' << id << ' ' << address << ' ' << key << ' ';
  return out.str();
}

}  // namespace

RegionKey::RegionKey(int rank, size_t size, uint64_t nonce, uint32_t id,
                     const Region* region)
    : RegionKey(rank, size, nonce, id,
                region != nullptr ? region->remoteAddress() : 0,
                region != nullptr ? region->remoteKey() : 0) {}

RegionKey::RegionKey(int rank, size_t size, uint64_t nonce, uint32_t id,
                     uint64_t address, uint32_t key)
    : RemoteKey(rank, size), nonce(nonce), id(id), address(address), key(key) {}

std::string RegionKey::serialize() const {
  const std::string text = fields(rank, size, nonce, id, address, key);
  std::ostringstream out;
  out << text << std::hex << crc32c(text);
  return out.str();
}

std::unique_ptr<RegionKey> RegionKey::deserialize(const std::string& text) {
  std::istringstream in(text);
  std::string prefix;
  int rank = -1;
  size_t size = 0;
  uint64_t nonce = 0;
  uint64_t address = 0;
  uint32_t id = 0;
  uint32_t key = 0;
  uint32_t crc = 0;
  in >> prefix >> std::hex >> rank >> size >> nonce >> id >> address >> key >>
      crc;
  const bool whole = !in.fail() && in.peek() == EOF;
  GLOO_ENFORCE(
      whole && prefix == kPrefix &&
          crc == crc32c(fields(rank, size, nonce, id, address, key)),
      "this text of ", text.size(),
      " bytes is not a remote key: pass what RemoteKey::serialize returned,"
      " unchanged");
  return std::unique_ptr<RegionKey>(
      new RegionKey(rank, size, nonce, id, address, key));
}

}  // namespace transport::base
GLOO_NAMESPACE_END
