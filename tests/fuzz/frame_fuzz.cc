#include "tests/fuzz/target.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT

void runShort(const char* data, size_t bytes) {
  try {
    FrameHeader header;
    decodeShort({data, bytes}, &header);
    require(header.payloadBytes == bytes - kShortHeadBytes &&
                header.payloadBytes <= kMaxDataPayload,
            "the payload is the rest of the frame");
    require(fitsShortHead(header), "a short head says it all");
    std::vector<char> again(kShortHeadBytes);
    encodeShort(header, again.data());
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
  for (int type = 1; type <= static_cast<int>(FrameType::kGet); type++) {
    FrameHeader header;
    header.type = static_cast<FrameType>(type);
    header.slot = 0x0700000100000001;
    header.number = 3;
    header.bytes = 4096;
    std::vector<char> bytes(FrameHeader::kBytes);
    encode(header, bytes.data());
    all.push_back(bytes);
  }
  FrameHeader message;
  message.type = FrameType::kData;
  message.flags = kFirst | kLast;
  message.number = 3;
  std::vector<char> bytes(kShortHeadBytes + 8);
  encodeShort(message, bytes.data());
  all.push_back(bytes);
  return all;
}

const AddFuzzTarget added({"frame", &run, seeds()});

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
