// Heads of whole eager messages, which are shorter.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tests/support/bytes.h"
#include "tests/transport/base/frame_bytes.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using test::bytesOf;
using test::fromHex;
using test::toHex;

// As those of wire_test.cc.
const char* const kGoldenShort =
    "83000201343332314847464544434241a8a7a6a5a4a3a2a15453525194939291"
    "aabb";

// What a short head can say.
FrameHeader someMessage() {
  FrameHeader h;
  h.type = FrameType::kData;
  h.flags = kFirst | kLast;
  h.linkCredits = 0x0102;
  h.payloadBytes = 2;
  h.seen = 0x31323334;
  h.slot = 0x4142434445464748;
  h.number = 0x51525354;
  h.bytes = 2;
  h.credits = 0x91929394;
  h.check = 0xa1a2a3a4a5a6a7a8;
  return h;
}

FrameHeader decodedShort(std::span<const char> frame) {
  ShortMessage message;
  const uint16_t credits = decodeShort(frame, &message);
  FrameHeader h = message.frame();
  h.linkCredits = credits;
  return h;
}

TEST(WireTest, AShortHeadKeepsEveryFieldOfAnEagerMessage) {
  const FrameHeader want = someMessage();
  ASSERT_TRUE(fitsShortHead(want));
  std::vector<char> bytes(kShortHeadBytes + 2, '\xaa');
  bytes.back() = '\xbb';
  encodeShort(shortOf(want), want.linkCredits, bytes.data());
  EXPECT_EQ(toHex(bytes), kGoldenShort);
  EXPECT_EQ(toHex(bytesOf(decodedShort(bytes))), toHex(bytesOf(want)));
}

TEST(WireTest, LinkCreditsArePutIntoAHead) {
  std::vector<char> bytes = bytesOf(someMessage());
  setLinkCredits(bytes.data(), 0xfedc);
  FrameHeader h = someMessage();
  h.linkCredits = 0xfedc;
  EXPECT_EQ(toHex(bytes), toHex(bytesOf(h)));
}

TEST(WireTest, OnlyWholeEagerMessagesHaveAShortHead) {
  const std::vector<void (*)(FrameHeader&)> others = {
      [](FrameHeader& h) { h.type = FrameType::kAnnounce; },
      [](FrameHeader& h) { h.flags = kFirst; },
      [](FrameHeader& h) { h.flags |= kDirect; },
      [](FrameHeader& h) { h.bytes++; },
      [](FrameHeader& h) { h.number = uint64_t{1} << 32; },
      [](FrameHeader& h) { h.index = 1; },
      [](FrameHeader& h) { h.offset = 1; },
      [](FrameHeader& h) { h.key = 1; },
  };
  for (size_t i = 0; i < others.size(); i++) {
    FrameHeader h = someMessage();
    others[i](h);
    EXPECT_FALSE(fitsShortHead(h)) << i;
  }
}

TEST(WireTest, ABadShortFrameIsRefused) {
  const auto good = fromHex(kGoldenShort);
  for (size_t n = 0; n < kShortHeadBytes; n++) {
    EXPECT_THROW(decodedShort(std::span(good).first(n)), WireError) << n;
  }
  EXPECT_EQ(decodedShort(std::span(good).first(kShortHeadBytes)).bytes, 0u);
  for (const size_t at : {0, 1}) {
    auto bad = good;
    bad[at] ^= 1;
    EXPECT_THROW(decodedShort(bad), WireError) << at;
  }
  std::vector<char> longest(kShortHeadBytes + kMaxDataPayload + 1);
  std::copy(good.begin(), good.end(), longest.begin());
  EXPECT_THROW(decodedShort(longest), WireError);
  longest.pop_back();
  EXPECT_EQ(decodedShort(longest).payloadBytes, kMaxDataPayload);
  EXPECT_THROW(decodeFrame(longest), WireError);
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
