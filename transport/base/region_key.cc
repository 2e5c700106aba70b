#include "transport/base/region_key.h"

#include "gloo/common/logging.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

// "gloo-key-2" rank size access nonce id address key crc, in hexadecimal.
constexpr const char* kPrefix = "gloo-key-2";

}  // namespace

RegionKey::RegionKey(int rank, size_t size, RemoteAccess access, uint64_t nonce,
                     uint32_t id, const Region* region)
    : RegionKey(rank, size, access, nonce, id,
                region != nullptr ? region->remoteAddress() : 0,
                region != nullptr ? region->remoteKey() : 0) {}

RegionKey::RegionKey(int rank, size_t size, RemoteAccess access, uint64_t nonce,
                     uint32_t id, uint64_t address, uint32_t key)
    : RemoteKey(rank, size),
      access(access),
      nonce(nonce),
      id(id),
      address(address),
      key(key) {}

std::string RegionKey::serialize() const {
  std::ostringstream out;
  out << kPrefix << std::hex << ' ' << rank << ' ' << size << ' '
      << static_cast<unsigned>(access) << ' ' << nonce << ' ' << id << ' '
      << address << ' ' << key << ' ';
  out << crc32c(out.str());
  return out.str();
}

// Numbers can be written in several ways: only the one above is a key.
std::unique_ptr<RegionKey> RegionKey::deserialize(const std::string& text) {
  std::istringstream in(text);
  std::string prefix;
  int rank = -1;
  size_t size = 0;
  unsigned access = 0;
  uint64_t nonce = 0;
  uint64_t address = 0;
  uint32_t id = 0;
  uint32_t key = 0;
  in >> prefix >> std::hex >> rank >> size >> access >> nonce >> id >>
      address >> key;
  const bool possible =
      !in.fail() && rank >= 0 && access != 0 &&
      access <= static_cast<unsigned>(RemoteAccess::kReadWrite);
  auto found = std::unique_ptr<RegionKey>(new RegionKey(
      rank, size, static_cast<RemoteAccess>(access), nonce, id, address, key));
  GLOO_ENFORCE(possible && found->serialize() == text, "this text of ",
               text.size(),
               " bytes is not a remote key: pass what RemoteKey::serialize "
               "returned, unchanged");
  return found;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
