#include "tests/fuzz/target.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT

void run(const char* data, size_t bytes) {
  const auto unpadded = withoutPadding({data, bytes});
  require(unpadded.data() == data && unpadded.size() <= bytes, "a beginning");
  try {
    const AddressRecord record = decodeAddress({data, bytes});
    require(record.extra.size() <= AddressRecord::kMaxExtra, "extra is short");
    const auto again = encode(record);
    require(again == std::vector<char>(data, data + bytes), "same bytes");
  } catch (const WireError&) {
  }
}

// As for hello: past the checksum, too.
void runResealed(const char* data, size_t bytes) {
  run(data, bytes);
  if (bytes < Hello::kHeadBytes) {
    return;
  }
  std::vector<char> sealed(data, data + bytes);
  const auto magic = encode(AddressRecord{});
  const uint32_t length = static_cast<uint32_t>(bytes);
  const uint32_t crc = crc32c(std::span(sealed).subspan(Hello::kHeadBytes));
  for (int i = 0; i < 4; i++) {
    sealed[i] = magic[i];
    sealed[4 + i] = static_cast<char>(length >> (8 * i));
    sealed[8 + i] = static_cast<char>(crc >> (8 * i));
  }
  run(sealed.data(), sealed.size());
}

std::vector<std::vector<char>> seeds() {
  AddressRecord four;
  four.rank = 3;
  four.size = 8;
  four.host = "node7";
  four.family = 4;
  four.ip = {10, 0, 0, 1};
  four.linkKind = "tcp";
  AddressRecord six = four;
  six.family = 6;
  six.extra.assign(AddressRecord::kMaxExtra, 1);
  return {encode(four), encode(six)};
}

const AddFuzzTarget added({"address", &runResealed, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
