#include "tests/fuzz/target.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT

void runShort(const char* data, size_t bytes) {
  try {
    ShortMessage message;
    const uint16_t credits = decodeShort({data, bytes}, &message);
    require(message.bytes == bytes - kShortHeadBytes &&
                message.bytes <= kMaxDataPayload,
            "the payload is the rest of the frame");
    require(fitsShortHead(message.frame()), "a short head says it all");
    std::vector<char> again(kShortHeadBytes);
    encodeShort(shortOf(message.frame()), credits, again.data());
    require(again == std::vector<char>(data, data + kShortHeadBytes),
            "same bytes of a short head");
  } catch (const WireError&) {
  }
}

void run(const char* data, size_t bytes) {
  runShort(data, bytes);
  try {
    const FrameHeader header = decodeFrame({data, bytes});
    require(header.type == FrameType::kData ||
                header.payloadBytes <= kMaxControlPayload,
            "control payloads are short");
    std::vector<char> again(FrameHeader::kBytes);
    encode(header, again.data());
    require(again == std::vector<char>(data, data + FrameHeader::kBytes),
            "same bytes");
  } catch (const WireError&) {
  }
}

std::vector<std::vector<char>> seeds() {
  std::vector<std::vector<char>> all;
  for (int type = 1; type <= static_cast<int>(FrameType::kDispute); type++) {
    FrameHeader header;
    header.type = static_cast<FrameType>(type);
    header.slot = 0x0700000100000001;
    header.number = 3;
    header.bytes = 4096;
    std::vector<char> bytes(FrameHeader::kBytes);
    encode(header, bytes.data());
    all.push_back(bytes);
  }
  ShortMessage message;
  message.number = 3;
  std::vector<char> bytes(kShortHeadBytes + 8);
  encodeShort(message, 5, bytes.data());
  all.push_back(bytes);
  return all;
}

const AddFuzzTarget added({"frame", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
