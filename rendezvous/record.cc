#include "rendezvous/record.h"

#include <algorithm>
#include <limits>

#include "gloo/common/string.h"
#include "gloo/transport/address.h"
#include "rendezvous/bytes.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

constexpr uint32_t kMagic = 0x63655247;  // "GRec"
constexpr uint8_t kVersion = 1;
constexpr size_t kChecksumAt = 28;

// Of the bytes before and after the checksum.
uint32_t recordChecksum(std::span<const char> bytes) {
  const uint32_t head = checksum(bytes.first(kChecksumAt));
  return checksum(bytes.subspan(kChecksumAt + 4), head);
}

}  // namespace

std::vector<char> encodeRecord(const Record& record) {
  std::vector<char> bytes;
  ByteWriter out(bytes);
  out.u32(kMagic);
  out.u8(kVersion);
  out.u8(static_cast<uint8_t>(record.kind));
  out.u16(static_cast<uint16_t>(record.address.size()));
  out.u32(static_cast<uint32_t>(record.rank));
  out.u32(static_cast<uint32_t>(record.size));
  out.u64(record.nonce);
  out.u32(static_cast<uint32_t>(record.extra.size()));
  out.u32(0);
  out.u64(record.writtenAt);
  out.raw(record.address);
  out.raw(record.extra);
  std::vector<char> sum;
  ByteWriter(sum).u32(recordChecksum(bytes));
  std::copy(sum.begin(), sum.end(), bytes.begin() + kChecksumAt);
  return bytes;
}

std::optional<Record> decodeRecord(std::span<const char> bytes,
                                   std::string* why) {
  if (bytes.size() < Record::kHeaderBytes) {
    *why = MakeString("it is truncated: ", bytes.size(), " bytes");
    return std::nullopt;
  }
  ByteReader in(bytes);
  if (in.u32() != kMagic) {
    *why = "it is not an address record";
    return std::nullopt;
  }
  const int version = in.u8();
  if (version != kVersion) {
    *why = MakeString("it has version ", version, ", not ", int{kVersion},
                      ": another release of the library wrote it");
    return std::nullopt;
  }
  const uint8_t kind = in.u8();
  const size_t addressBytes = in.u16();
  const uint32_t rank = in.u32();
  const uint32_t size = in.u32();
  Record record;
  record.nonce = in.u64();
  const size_t extraBytes = in.u32();
  const uint32_t sum = in.u32();
  record.writtenAt = in.u64();
  if (bytes.size() != Record::kHeaderBytes + addressBytes + extraBytes) {
    *why = MakeString("it has ", bytes.size(), " bytes instead of ",
                      Record::kHeaderBytes + addressBytes + extraBytes);
    return std::nullopt;
  }
  if (sum != recordChecksum(bytes)) {
    *why = "it was altered: the checksum is wrong";
    return std::nullopt;
  }
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  if (kind > static_cast<uint8_t>(Record::Kind::kRefusal) || rank > kMost ||
      size > kMost || addressBytes > transport::Address::kMaxByteSize ||
      extraBytes > Record::kMaxExtraBytes) {
    *why = "it is malformed";
    return std::nullopt;
  }
  record.kind = static_cast<Record::Kind>(kind);
  record.rank = static_cast<int>(rank);
  record.size = static_cast<int>(size);
  record.address = toVector(in.raw(addressBytes));
  record.extra = toVector(in.raw(extraBytes));
  return record;
}

std::string recordKey(int rank) { return MakeString("gloo.rank.", rank); }

}  // namespace rendezvous
GLOO_NAMESPACE_END
