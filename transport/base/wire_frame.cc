// The heads of frames.
#include "gloo/common/string.h"
#include "transport/base/wire.h"
#include "transport/base/wire_bytes.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

uint8_t flagsAllowed(FrameType type) {
  switch (type) {
    case FrameType::kData:
      return kFirst | kLast | kDirect | kBound | kPut | kReply;
    case FrameType::kAdvert:
      return kReply;
    case FrameType::kDone:
      return kReply | kError | kSend;
    case FrameType::kCancel:
      return kSend | kReply | kBound;
    default:
      return 0;
  }
}

uint32_t payloadAllowed(const FrameHeader& header) {
  switch (header.type) {
    case FrameType::kData:
      return kMaxDataPayload;
    case FrameType::kAbort:
    case FrameType::kDispute:
      return kMaxControlPayload;
    case FrameType::kDone:
      return header.has(kError) ? kMaxControlPayload : 0;
    default:
      return 0;
  }
}

}  // namespace

void encode(const FrameHeader& h, char* out) {
  store(out, static_cast<uint8_t>(h.type));
  store(out + 1, h.flags);
  store(out + 2, h.linkCredits);
  store(out + 4, h.payloadBytes);
  store(out + 8, h.index);
  store(out + 12, h.seen);
  store(out + 16, h.slot);
  store(out + 24, h.number);
  store(out + 32, h.bytes);
  store(out + 40, h.offset);
  store(out + 48, h.key);
  store(out + 52, h.credits);
  store(out + 56, h.check);
}

FrameHeader decodeFrame(std::span<const char> bytes) {
  if (bytes.size() < FrameHeader::kBytes) {
    throw WireError(MakeString("frame: only ", bytes.size(), " bytes"));
  }
  const char* in = bytes.data();
  FrameHeader h;
  const uint8_t type = load<uint8_t>(in);
  if (type < 1 || type > static_cast<uint8_t>(FrameType::kDispute)) {
    throw WireError(MakeString("frame: unknown type ", int(type)));
  }
  h.type = static_cast<FrameType>(type);
  h.flags = load<uint8_t>(in + 1);
  h.linkCredits = load<uint16_t>(in + 2);
  h.payloadBytes = load<uint32_t>(in + 4);
  h.index = load<uint32_t>(in + 8);
  h.seen = load<uint32_t>(in + 12);
  h.slot = load<uint64_t>(in + 16);
  h.number = load<uint64_t>(in + 24);
  h.bytes = load<uint64_t>(in + 32);
  h.offset = load<uint64_t>(in + 40);
  h.key = load<uint32_t>(in + 48);
  h.credits = load<uint32_t>(in + 52);
  h.check = load<uint64_t>(in + 56);
  if ((h.flags & ~flagsAllowed(h.type)) != 0) {
    throw WireError(
        MakeString("frame: type ", int(type), " with flags ", int(h.flags)));
  }
  if (h.payloadBytes > payloadAllowed(h)) {
    throw WireError(MakeString("frame: type ", int(type), " with ",
                               h.payloadBytes, " bytes of payload"));
  }
  return h;
}

void setLinkCredits(char* head, uint16_t credits) { store(head + 2, credits); }

void encodeShort(const ShortMessage& m, uint16_t linkCredits, char* out) {
  store(out, kShortHead);
  store(out + 1, uint8_t{0});
  store(out + 2, linkCredits);
  store(out + 4, m.seen);
  store(out + 8, m.slot);
  store(out + 16, m.check);
  store(out + 24, m.number);
  store(out + 28, m.credits);
}

uint16_t decodeShort(std::span<const char> frame, ShortMessage* message) {
  const size_t payload = frame.size() - kShortHeadBytes;
  if (frame.size() < kShortHeadBytes || payload > kMaxDataPayload) {
    throw WireError(MakeString("short frame: ", frame.size(), " bytes"));
  }
  const char* in = frame.data();
  if (load<uint8_t>(in) != kShortHead || load<uint8_t>(in + 1) != 0) {
    throw WireError("short frame: unknown type");
  }
  message->seen = load<uint32_t>(in + 4);
  message->slot = load<uint64_t>(in + 8);
  message->check = load<uint64_t>(in + 16);
  message->number = load<uint32_t>(in + 24);
  message->credits = load<uint32_t>(in + 28);
  message->bytes = static_cast<uint32_t>(payload);
  return load<uint16_t>(in + 2);
}

namespace {

uint64_t checkOfNext(uint64_t check) {
  return internal::withSequence(
      check, internal::sequenceAfter(internal::sequenceOf(check)));
}

}  // namespace

std::optional<HeadDelta> deltaOf(const ShortMessage& before,
                                 const ShortMessage& message) {
  HeadDelta delta;
  delta.nextOperation = message.check != before.check;
  const uint32_t seen = message.seen - before.seen;
  if (message.slot != before.slot || message.number != before.number + 1 ||
      message.credits != before.credits || seen > UINT8_MAX ||
      (delta.nextOperation && message.check != checkOfNext(before.check))) {
    return std::nullopt;
  }
  delta.seen = static_cast<uint8_t>(seen);
  return delta;
}

ShortMessage withDelta(const ShortMessage& before, HeadDelta delta,
                       uint32_t bytes) {
  ShortMessage message = before;
  message.check =
      delta.nextOperation ? checkOfNext(before.check) : before.check;
  message.number++;
  message.bytes = bytes;
  message.seen += delta.seen;
  return message;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
