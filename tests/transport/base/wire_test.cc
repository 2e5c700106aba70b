#include "transport/base/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/support/bytes.h"
#include "tests/transport/base/frame_bytes.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using internal::Cause;
using test::bytesOf;
using test::fromHex;
using test::toHex;

Hello someHello() {
  Hello h;
  h.purpose = Purpose::kProbe;
  h.verdict = Verdict::kUnknown;
  h.features = 0x01020304;
  h.srcRank = 2;
  h.dstRank = 5;
  h.size = -7;
  h.srcNonce = 0x1112131415161718;
  h.dstNonce = 0x2122232425262728;
  h.worldNonce = 0x3132333435363738;
  h.tag = 0x4142434445464748;
  h.begun = 0x5152535455565758;
  h.linkKind = "tcp";
  h.blob = {'\x00', '\xff'};
  h.text = "why";
  return h;
}

AddressRecord someAddress() {
  AddressRecord a;
  a.rank = 3;
  a.size = 8;
  a.nonce = 0x0102030405060708;
  a.hostId = 0x1112131415161718;
  a.pidNamespace = 0x21222324;
  a.pid = 4711;
  a.host = "node7";
  a.family = 4;
  a.ip = {10, 0, 0, 1};
  a.scope = 9;
  a.port = 0xbeef;
  a.linkKind = "tcp";
  a.extra = {1, 2};
  return a;
}

Cause someCause() { return Cause{Cause::Kind::kPeerLost, 1, -1, "gone"}; }

FrameHeader someFrame() {
  FrameHeader h;
  h.type = FrameType::kData;
  h.flags = kFirst | kLast | kDirect;
  h.linkCredits = 0x0102;
  h.payloadBytes = 0x11;
  h.index = 0x21222324;
  h.seen = 0x31323334;
  h.slot = 0x4142434445464748;
  h.number = 0x5152535455565758;
  h.bytes = 0x6162636465666768;
  h.offset = 0x7172737475767778;
  h.key = 0x81828384;
  h.credits = 0x91929394;
  h.check = 0xa1a2a3a4a5a6a7a8;
  return h;
}

// These were made by another program from the prose of wire.h: what is on the
// wire must not change while the version is 11.
const char* const kGoldenHello =
    "474c4f3156000000cf5f1e520b000302040302010200000005000000f9ffffff"
    "1817161514131211282726252423222138373635343332314847464544434241"
    "58575655545352510300746370020000ff0300776879";
const char* const kGoldenAddress =
    "41474c31550000001b6250730b00030000000800000008070605040302011817"
    "161514131211242322216712000005006e6f646537040a000001000000000000"
    "00000000000009000000efbe030074637002000102";
const char* const kGoldenCause = "0201000000ffffffff0400676f6e65";
const char* const kGoldenFrame =
    "0307020111000000242322213433323148474645444342415857565554535251"
    "686766656463626178777675747372718483828194939291a8a7a6a5a4a3a2a1";

TEST(WireTest, EncodesTheGoldenBytes) {
  EXPECT_EQ(toHex(encode(someHello())), kGoldenHello);
  EXPECT_EQ(toHex(encode(someAddress())), kGoldenAddress);
  EXPECT_EQ(toHex(encode(someCause())), kGoldenCause);
  EXPECT_EQ(toHex(bytesOf(someFrame())), kGoldenFrame);
}

TEST(WireTest, HelloKeepsEveryField) {
  const Hello h = decodeHello(fromHex(kGoldenHello));
  const Hello want = someHello();
  EXPECT_EQ(h.version, kWireVersion);
  EXPECT_EQ(h.purpose, want.purpose);
  EXPECT_EQ(h.verdict, want.verdict);
  EXPECT_EQ(h.features, want.features);
  EXPECT_EQ(h.srcRank, want.srcRank);
  EXPECT_EQ(h.dstRank, want.dstRank);
  EXPECT_EQ(h.size, want.size);
  EXPECT_EQ(h.srcNonce, want.srcNonce);
  EXPECT_EQ(h.dstNonce, want.dstNonce);
  EXPECT_EQ(h.worldNonce, want.worldNonce);
  EXPECT_EQ(h.tag, want.tag);
  EXPECT_EQ(h.begun, want.begun);
  EXPECT_EQ(h.linkKind, want.linkKind);
  EXPECT_EQ(h.blob, want.blob);
  EXPECT_EQ(h.text, want.text);
}

TEST(WireTest, AddressKeepsEveryField) {
  const AddressRecord a = decodeAddress(fromHex(kGoldenAddress));
  const AddressRecord want = someAddress();
  EXPECT_EQ(a.rank, want.rank);
  EXPECT_EQ(a.size, want.size);
  EXPECT_EQ(a.nonce, want.nonce);
  EXPECT_EQ(a.hostId, want.hostId);
  EXPECT_EQ(a.pidNamespace, want.pidNamespace);
  EXPECT_EQ(a.pid, want.pid);
  EXPECT_EQ(a.host, want.host);
  EXPECT_EQ(a.family, want.family);
  EXPECT_EQ(a.ip, want.ip);
  EXPECT_EQ(a.scope, want.scope);
  EXPECT_EQ(a.port, want.port);
  EXPECT_EQ(a.linkKind, want.linkKind);
  EXPECT_EQ(a.extra, want.extra);
}

TEST(WireTest, CauseKeepsEveryField) {
  const Cause c = decodeCause(fromHex(kGoldenCause));
  EXPECT_EQ(c.kind, Cause::Kind::kPeerLost);
  EXPECT_EQ(c.foundBy, 1);
  EXPECT_EQ(c.culprit, -1);
  EXPECT_EQ(c.text, "gone");
}

TEST(WireTest, FrameKeepsEveryField) {
  const FrameHeader h = decodeFrame(fromHex(kGoldenFrame));
  EXPECT_EQ(toHex(bytesOf(h)), kGoldenFrame);
  EXPECT_EQ(h.type, FrameType::kData);
  EXPECT_TRUE(h.has(kFirst) && h.has(kLast) && h.has(kDirect));
  EXPECT_FALSE(h.has(kBound));
  EXPECT_EQ(h.payloadBytes, 0x11u);
  EXPECT_EQ(h.slot, 0x4142434445464748u);
}

TEST(WireTest, EveryTruncationIsRefused) {
  const auto hello = fromHex(kGoldenHello);
  for (size_t n = 0; n < hello.size(); n++) {
    EXPECT_THROW(decodeHello(std::span(hello).first(n)), WireError) << n;
  }
  const auto address = fromHex(kGoldenAddress);
  for (size_t n = 0; n < address.size(); n++) {
    EXPECT_THROW(decodeAddress(std::span(address).first(n)), WireError) << n;
  }
  const auto cause = fromHex(kGoldenCause);
  for (size_t n = 0; n < cause.size(); n++) {
    EXPECT_THROW(decodeCause(std::span(cause).first(n)), WireError) << n;
  }
  const auto frame = fromHex(kGoldenFrame);
  for (size_t n = 0; n < frame.size(); n++) {
    EXPECT_THROW(decodeFrame(std::span(frame).first(n)), WireError) << n;
  }
}

TEST(WireTest, BytesTooManyAreRefused) {
  auto hello = fromHex(kGoldenHello);
  hello.push_back(0);
  EXPECT_THROW(decodeHello(hello), WireError);
  auto address = fromHex(kGoldenAddress);
  address.push_back(0);
  EXPECT_THROW(decodeAddress(address), WireError);
  auto cause = fromHex(kGoldenCause);
  cause.push_back(0);
  EXPECT_THROW(decodeCause(cause), WireError);
}

// The checksum finds every change of one byte, wherever it is.
TEST(WireTest, EveryAlteredByteOfHelloAndAddressIsRefused) {
  for (int value : {0x01, 0x80, 0xff}) {
    auto hello = fromHex(kGoldenHello);
    for (char& byte : hello) {
      byte = static_cast<char>(byte ^ value);
      EXPECT_THROW(decodeHello(hello), WireError) << &byte - hello.data();
      byte = static_cast<char>(byte ^ value);
    }
    auto address = fromHex(kGoldenAddress);
    for (char& byte : address) {
      byte = static_cast<char>(byte ^ value);
      EXPECT_THROW(decodeAddress(address), WireError) << &byte - address.data();
      byte = static_cast<char>(byte ^ value);
    }
  }
}

TEST(WireTest, HelloLengthChecksMagicAndLimits) {
  auto bytes = fromHex(kGoldenHello);
  const auto head = [&] {
    return std::span<const char, Hello::kHeadBytes>(bytes.data(),
                                                    Hello::kHeadBytes);
  };
  EXPECT_EQ(helloLength(head()), bytes.size());
  const auto setLength = [&](uint32_t n) {
    for (int i = 0; i < 4; i++) {
      bytes[4 + i] = static_cast<char>(n >> (8 * i));
    }
  };
  setLength(Hello::kMaxBytes);
  EXPECT_EQ(helloLength(head()), Hello::kMaxBytes);
  for (uint32_t n : {0u, 11u, 4097u, 0x80000000u, 0xffffffffu}) {
    setLength(n);
    EXPECT_THROW(helloLength(head()), WireError) << n;
  }
  bytes[0] = 'H';
  EXPECT_THROW(helloLength(head()), WireError);
}

TEST(WireTest, LargestHelloFitsItsLimit) {
  Hello h = someHello();
  h.linkKind = std::string(15, 'k');
  h.blob.assign(Hello::kMaxBlob, 'b');
  h.text.assign(Hello::kMaxText, 't');
  const auto bytes = encode(h);
  EXPECT_LE(bytes.size(), Hello::kMaxBytes);
  EXPECT_EQ(decodeHello(bytes).text, h.text);
}

TEST(WireTest, LongTextsAreCutNotRefused) {
  Hello h = someHello();
  h.text.assign(10000, 't');
  EXPECT_EQ(decodeHello(encode(h)).text.size(), Hello::kMaxText);
  AddressRecord a = someAddress();
  a.host.assign(300, 'h');
  EXPECT_EQ(decodeAddress(encode(a)).host.size(), 32u);
  Cause c = someCause();
  c.text.assign(10000, 'c');
  const auto bytes = encode(c);
  EXPECT_LE(bytes.size(), kMaxControlPayload);
  EXPECT_EQ(decodeCause(bytes).text.size(), Cause::kMaxText);
}

TEST(WireTest, LargestAddressFitsTheApiLimit) {
  AddressRecord a = someAddress();
  a.family = 6;
  a.host.assign(32, 'h');
  a.linkKind.assign(15, 'k');
  a.extra.assign(AddressRecord::kMaxExtra, 'x');
  EXPECT_LE(encode(a).size(), 192u);  // transport::Address::kMaxByteSize
}

TEST(WireTest, ZerosBehindAnAddressAreTakenOff) {
  const auto address = fromHex(kGoldenAddress);
  for (const size_t zeros : {0, 1, 100}) {
    auto padded = address;
    padded.resize(address.size() + zeros);
    const auto rest = withoutPadding(padded);
    EXPECT_EQ(std::vector<char>(rest.begin(), rest.end()), address);
  }
  auto followed = address;
  followed.insert(followed.end(), {0, 0, 1});
  EXPECT_EQ(withoutPadding(followed).size(), followed.size());
  for (size_t bytes = 0; bytes < address.size(); bytes++) {  // cut short
    EXPECT_EQ(withoutPadding(std::span(address).first(bytes)).size(), bytes);
  }
  const std::vector<char> nothing(192);
  EXPECT_THROW(decodeAddress(withoutPadding(nothing)), WireError);
}

TEST(WireTest, FrameTypesAndFlagsAreChecked) {
  FrameHeader h;
  for (int type = 0; type < 256; type++) {
    auto bytes = bytesOf(h);
    bytes[0] = static_cast<char>(type);
    if (type >= 1 && type <= static_cast<int>(FrameType::kDispute)) {
      EXPECT_NO_THROW(decodeFrame(bytes)) << type;
    } else {
      EXPECT_THROW(decodeFrame(bytes), WireError) << type;
    }
  }
  for (int flags = 1; flags < 256; flags++) {
    auto bytes = bytesOf(h);  // kCredit has no flags
    bytes[1] = static_cast<char>(flags);
    EXPECT_THROW(decodeFrame(bytes), WireError) << flags;
  }
}

// A peer must not make us wait for, or store, a payload that has no meaning.
TEST(WireTest, ControlFramesHaveBoundedPayloads) {
  for (int type = 1; type <= static_cast<int>(FrameType::kDispute); type++) {
    FrameHeader h;
    h.type = static_cast<FrameType>(type);
    h.payloadBytes = kMaxControlPayload + 1;
    if (h.type == FrameType::kData) {
      EXPECT_NO_THROW(decodeFrame(bytesOf(h)));
    } else {
      EXPECT_THROW(decodeFrame(bytesOf(h)), WireError) << type;
    }
  }
}

// RFC 3720, appendix B.4.
TEST(WireTest, ChecksumIsThatOfTheRfc) {
  EXPECT_EQ(crc32c(std::vector<char>(32, '\x00')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<char>(32, '\xff')), 0x62a8ab43u);
  std::vector<char> rising(32);
  for (int i = 0; i < 32; i++) {
    rising[i] = static_cast<char>(i);
  }
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c({}), 0u);
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
