#include "transport/base/wire.h"

#include <algorithm>
#include <type_traits>

#include "gloo/common/string.h"
#include "transport/base/wire_bytes.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

class Writer {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_integral_v<T>);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store(bytes_.data() + at, value);
  }

  // A u16 length, then the bytes; longer ones are cut.
  template <typename Container>
  void putBytes(const Container& value, size_t limit) {
    const size_t length = std::min<size_t>(value.size(), limit);
    put(static_cast<uint16_t>(length));
    bytes_.insert(bytes_.end(), value.begin(), value.begin() + length);
  }

  std::vector<char>& bytes() { return bytes_; }

 private:
  std::vector<char> bytes_;
};

class Reader {
 public:
  Reader(std::span<const char> bytes, const char* what)
      : bytes_(bytes), what_(what) {}

  template <typename T>
  T get() {
    need(sizeof(T));
    const T value = load<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return value;
  }

  template <typename Container>
  Container getBytes(size_t limit) {
    const size_t length = get<uint16_t>();
    if (length > limit) {
      throw WireError(MakeString(what_, ": a part has ", length,
                                 " bytes, more than ", limit));
    }
    need(length);
    const char* from = bytes_.data() + at_;
    at_ += length;
    return Container(from, from + length);
  }

  void expectEnd() const {
    if (at_ != bytes_.size()) {
      throw WireError(
          MakeString(what_, ": ", bytes_.size() - at_, " bytes too many"));
    }
  }

 private:
  void need(size_t n) const {
    if (bytes_.size() - at_ < n) {
      throw WireError(MakeString(what_, ": truncated at byte ", at_));
    }
  }

  std::span<const char> bytes_;
  const char* what_;
  size_t at_ = 0;
};

// Envelope of hello and address: magic, total length, CRC-32C of what follows.
constexpr size_t kEnvelope = Hello::kHeadBytes;

std::vector<char> seal(Writer body, uint32_t magic) {
  Writer out;
  out.put(magic);
  out.put(static_cast<uint32_t>(kEnvelope + body.bytes().size()));
  out.put(crc32c(body.bytes()));
  out.bytes().insert(out.bytes().end(), body.bytes().begin(),
                     body.bytes().end());
  return std::move(out.bytes());
}

std::span<const char> unseal(std::span<const char> bytes, uint32_t magic,
                             const char* what) {
  if (bytes.size() < kEnvelope) {
    throw WireError(MakeString(what, ": only ", bytes.size(), " bytes"));
  }
  if (load<uint32_t>(bytes.data()) != magic) {
    throw WireError(MakeString(what, ": does not begin with the magic number"));
  }
  if (load<uint32_t>(bytes.data() + 4) != bytes.size()) {
    throw WireError(MakeString(what, ": has ", bytes.size(),
                               " bytes, says that it has ",
                               load<uint32_t>(bytes.data() + 4)));
  }
  const auto body = bytes.subspan(kEnvelope);
  if (load<uint32_t>(bytes.data() + 8) != crc32c(body)) {
    throw WireError(MakeString(what, ": wrong checksum"));
  }
  return body;
}

constexpr uint32_t kAddressMagic = 0x314c4741;  // "AGL1"

template <typename Enum>
Enum checked(uint8_t value, Enum last, const char* what) {
  if (value > static_cast<uint8_t>(last)) {
    throw WireError(MakeString(what, ": unknown value ", int(value)));
  }
  return static_cast<Enum>(value);
}

}  // namespace

std::vector<char> encode(const Hello& hello) {
  Writer w;
  w.put(hello.version);
  w.put(static_cast<uint8_t>(hello.purpose));
  w.put(static_cast<uint8_t>(hello.verdict));
  w.put(hello.features);
  w.put(hello.srcRank);
  w.put(hello.dstRank);
  w.put(hello.size);
  w.put(hello.srcNonce);
  w.put(hello.dstNonce);
  w.put(hello.worldNonce);
  w.put(hello.tag);
  w.put(hello.begun);
  w.putBytes(hello.linkKind, 15);
  w.putBytes(hello.blob, Hello::kMaxBlob);
  w.putBytes(hello.text, Hello::kMaxText);
  return seal(std::move(w), kWireMagic);
}

size_t helloLength(std::span<const char, Hello::kHeadBytes> head) {
  if (load<uint32_t>(head.data()) != kWireMagic) {
    throw WireError("hello: does not begin with the magic number");
  }
  const size_t length = load<uint32_t>(head.data() + 4);
  if (length < Hello::kHeadBytes || length > Hello::kMaxBytes) {
    throw WireError(MakeString("hello: impossible length ", length));
  }
  return length;
}

Hello decodeHello(std::span<const char> bytes) {
  Reader r(unseal(bytes, kWireMagic, "hello"), "hello");
  Hello h;
  h.version = r.get<uint16_t>();
  if (h.version != kWireVersion) {
    throw WireError(MakeString("hello: protocol version ", h.version,
                               ", this process speaks ", kWireVersion));
  }
  const auto purpose = r.get<uint8_t>();
  if (purpose == 0) {
    throw WireError("hello: no purpose");
  }
  h.purpose = checked(purpose, Purpose::kRefusal, "hello: purpose");
  h.verdict = checked(r.get<uint8_t>(), Verdict::kRefused, "hello: verdict");
  h.features = r.get<uint32_t>();
  h.srcRank = r.get<int32_t>();
  h.dstRank = r.get<int32_t>();
  h.size = r.get<int32_t>();
  h.srcNonce = r.get<uint64_t>();
  h.dstNonce = r.get<uint64_t>();
  h.worldNonce = r.get<uint64_t>();
  h.tag = r.get<uint64_t>();
  h.begun = r.get<uint64_t>();
  h.linkKind = r.getBytes<std::string>(15);
  h.blob = r.getBytes<std::vector<char>>(Hello::kMaxBlob);
  h.text = r.getBytes<std::string>(Hello::kMaxText);
  r.expectEnd();
  return h;
}

std::vector<char> encode(const AddressRecord& a) {
  Writer w;
  w.put(kWireVersion);
  w.put(a.rank);
  w.put(a.size);
  w.put(a.nonce);
  w.put(a.hostId);
  w.put(a.pidNamespace);
  w.put(a.pid);
  w.putBytes(a.host, 32);
  w.put(a.family);
  for (const uint8_t byte : a.ip) {
    w.put(byte);
  }
  w.put(a.scope);
  w.put(a.port);
  w.putBytes(a.linkKind, 15);
  w.putBytes(a.extra, AddressRecord::kMaxExtra);
  return seal(std::move(w), kAddressMagic);
}

AddressRecord decodeAddress(std::span<const char> bytes) {
  Reader r(unseal(bytes, kAddressMagic, "address"), "address");
  const auto version = r.get<uint16_t>();
  if (version != kWireVersion) {
    throw WireError(MakeString("address: protocol version ", version,
                               ", this process speaks ", kWireVersion));
  }
  AddressRecord a;
  a.rank = r.get<int32_t>();
  a.size = r.get<int32_t>();
  a.nonce = r.get<uint64_t>();
  a.hostId = r.get<uint64_t>();
  a.pidNamespace = r.get<uint32_t>();
  a.pid = r.get<uint32_t>();
  a.host = r.getBytes<std::string>(32);
  a.family = r.get<uint8_t>();
  if (a.family != 4 && a.family != 6) {
    throw WireError(MakeString("address: unknown family ", int(a.family)));
  }
  for (uint8_t& byte : a.ip) {
    byte = r.get<uint8_t>();
  }
  a.scope = r.get<uint32_t>();
  a.port = r.get<uint16_t>();
  a.linkKind = r.getBytes<std::string>(15);
  a.extra = r.getBytes<std::vector<char>>(AddressRecord::kMaxExtra);
  r.expectEnd();
  return a;
}

std::span<const char> withoutPadding(std::span<const char> address) {
  if (address.size() < kEnvelope) {
    return address;
  }
  const size_t length = load<uint32_t>(address.data() + 4);
  if (length > address.size()) {
    return address;
  }
  const auto padding = address.subspan(length);
  const bool zeros = std::all_of(padding.begin(), padding.end(),
                                 [](char byte) { return byte == 0; });
  return zeros ? address.first(length) : address;
}

std::vector<char> encode(const internal::Cause& cause) {
  Writer w;
  w.put(static_cast<uint8_t>(cause.kind));
  w.put(cause.foundBy);
  w.put(cause.culprit);
  w.putBytes(cause.text, internal::Cause::kMaxText);
  return std::move(w.bytes());
}

internal::Cause decodeCause(std::span<const char> bytes) {
  using internal::Cause;
  Reader r(bytes, "cause");
  Cause cause;
  cause.kind = checked(r.get<uint8_t>(), Cause::Kind::kClosed, "cause: kind");
  cause.foundBy = r.get<int32_t>();
  cause.culprit = r.get<int32_t>();
  cause.text = r.getBytes<std::string>(Cause::kMaxText);
  r.expectEnd();
  return cause;
}

std::vector<char> encode(const Dispute& dispute) {
  Writer w;
  w.put(dispute.tag);
  w.put(static_cast<int32_t>(dispute.said.rank));
  w.put(dispute.said.word);
  w.put(dispute.yours);
  w.put(static_cast<uint8_t>(dispute.details != nullptr));
  if (dispute.details != nullptr) {
    const internal::CheckDetails& details = *dispute.details;
    w.put(details.count);
    w.put(details.segmentBytes);
    w.put(details.base);
    w.put(details.vectors);
    w.put(details.root);
    w.put(details.elementSize);
    w.put(static_cast<uint16_t>(details.counts.size()));
    for (const uint64_t count : details.counts) {
      w.put(count);
    }
  }
  return std::move(w.bytes());
}

Dispute decodeDispute(std::span<const char> bytes) {
  Reader r(bytes, "dispute");
  Dispute dispute;
  dispute.tag = r.get<uint64_t>();
  dispute.said.rank = r.get<int32_t>();
  dispute.said.word = r.get<uint64_t>();
  dispute.yours = r.get<uint64_t>();
  enum class Has : uint8_t { kNone, kDetails };
  if (checked(r.get<uint8_t>(), Has::kDetails, "dispute: details") ==
      Has::kDetails) {
    const auto details = std::make_shared<internal::CheckDetails>();
    details->count = r.get<uint64_t>();
    details->segmentBytes = r.get<uint64_t>();
    details->base = r.get<uint32_t>();
    details->vectors = r.get<uint32_t>();
    details->root = r.get<uint32_t>();
    details->elementSize = r.get<uint64_t>();
    const size_t counts = r.get<uint16_t>();
    if (counts > internal::CheckDetails::kMostCounts) {
      throw WireError(MakeString("dispute: ", counts, " counts"));
    }
    for (size_t i = 0; i < counts; i++) {
      details->counts.push_back(r.get<uint64_t>());
    }
    dispute.details = details;
  }
  r.expectEnd();
  return dispute;
}

uint32_t crc32c(std::span<const char> bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int k = 0; k < 8; k++) {
        c = (c & 1) != 0 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
      }
      t[i] = c;
    }
    return t;
  }();
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  }
  return crc ^ 0xffffffffu;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
