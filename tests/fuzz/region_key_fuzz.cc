#include <sstream>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "tests/fuzz/target.h"
#include "transport/base/region_key.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::RemoteAccess;
using transport::base::RegionKey;

// What is accepted is a key that a rank can have made, and the only text of it.
void accept(const std::string& text) {
  try {
    const auto key = RegionKey::deserialize(text);
    require(key->rank >= 0, "a rank");
    require(key->access == RemoteAccess::kRead ||
                key->access == RemoteAccess::kWrite ||
                key->access == RemoteAccess::kReadWrite,
            "a use that exists");
    require(key->serialize() == text, "same text");
  } catch (const EnforceNotMet&) {
  }
}

// No mutation finds a checksum: the text once as it is, once with its own.
void run(const char* data, size_t bytes) {
  const std::string text(data, bytes);
  accept(text);
  std::ostringstream checked;
  checked << text << std::hex << transport::base::crc32c(text);
  accept(checked.str());
}

std::vector<char> without(size_t tail, const std::string& text) {
  return {text.begin(), text.end() - static_cast<std::ptrdiff_t>(tail)};
}

std::vector<std::vector<char>> seeds() {
  struct Registered final : transport::base::Region {
    uint64_t remoteAddress() const override { return 0x7f0012345678; }
    uint32_t remoteKey() const override { return 0xfedcba98; }
  };
  const Registered region;
  const std::string plain =
      RegionKey(0, 100, RemoteAccess::kReadWrite, 0x1234, 1, nullptr)
          .serialize();
  const std::string verbs =
      RegionKey(4095, size_t{5} << 32, RemoteAccess::kRead, ~uint64_t{0}, 77,
                &region)
          .serialize();
  const auto crc = [](const std::string& text) {
    return text.size() - text.rfind(' ') - 1;
  };
  return {without(0, plain), without(0, verbs), without(crc(plain), plain),
          without(crc(verbs), verbs)};
}

const AddFuzzTarget added({"region_key", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
