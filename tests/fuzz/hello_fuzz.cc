#include "tests/fuzz/target.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT

// What is accepted is what encode writes: one text for each hello.
void run(const char* data, size_t bytes) {
  try {
    if (bytes >= Hello::kHeadBytes) {
      const size_t length = helloLength(
          std::span<const char, Hello::kHeadBytes>(data, Hello::kHeadBytes));
      require(length <= Hello::kMaxBytes, "helloLength has a limit");
    }
    const Hello hello = decodeHello({data, bytes});
    require(hello.blob.size() <= Hello::kMaxBlob, "blob has a limit");
    require(hello.text.size() <= Hello::kMaxText, "text has a limit");
    const auto again = encode(hello);
    require(again == std::vector<char>(data, data + bytes), "same bytes");
  } catch (const WireError&) {
  }
}

// The checksum keeps mutations out of the parser behind it, so seeds are
// damaged here and sealed again.
void runResealed(const char* data, size_t bytes) {
  run(data, bytes);
  if (bytes < Hello::kHeadBytes) {
    return;
  }
  std::vector<char> sealed(data, data + bytes);
  const uint32_t length = static_cast<uint32_t>(bytes);
  const uint32_t crc = crc32c(std::span(sealed).subspan(Hello::kHeadBytes));
  for (int i = 0; i < 4; i++) {
    sealed[i] = static_cast<char>(kWireMagic >> (8 * i));
    sealed[4 + i] = static_cast<char>(length >> (8 * i));
    sealed[8 + i] = static_cast<char>(crc >> (8 * i));
  }
  run(sealed.data(), sealed.size());
}

std::vector<std::vector<char>> seeds() {
  Hello plain;
  plain.srcRank = 1;
  plain.dstRank = 0;
  plain.size = 2;
  plain.linkKind = "tcp";
  Hello full = plain;
  full.purpose = Purpose::kRefusal;
  full.verdict = Verdict::kRefused;
  full.blob.assign(64, 7);
  full.text = "another process has rank 1";
  Hello probe = plain;
  probe.purpose = Purpose::kProbe;
  probe.tag = 5;
  probe.begun = 7;
  return {encode(plain), encode(full), encode(probe)};
}

const AddFuzzTarget added({"hello", &runResealed, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
