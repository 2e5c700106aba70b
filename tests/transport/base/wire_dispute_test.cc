// What a rank says of its word to one that contradicts it.
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/bytes.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using test::fromHex;
using test::toHex;

Dispute someDispute() {
  internal::CheckDetails details;
  details.count = 0x31;
  details.segmentBytes = 0x32;
  details.base = 0x33;
  details.vectors = 0x34;
  details.root = 0x35;
  details.elementSize = 0x38;
  details.counts = {0x36, 0x37};
  return {0x0102030405060708,
          {2, 0x1112131415161718},
          0x2122232425262728,
          std::make_shared<internal::CheckDetails>(details)};
}

const char* const kGoldenDispute =
    "0807060504030201020000001817161514131211282726252423222101310000"
    "0000000000320000000000000033000000340000003500000038000000000000"
    "0002003600000000000000"
    "3700000000000000";

TEST(WireDispute, KeepsEveryField) {
  EXPECT_EQ(toHex(encode(someDispute())), kGoldenDispute);
  const Dispute d = decodeDispute(fromHex(kGoldenDispute));
  EXPECT_EQ(d.tag, 0x0102030405060708u);
  EXPECT_EQ(d.said.rank, 2);
  EXPECT_EQ(d.said.word, 0x1112131415161718u);
  EXPECT_EQ(d.yours, 0x2122232425262728u);
  ASSERT_NE(d.details, nullptr);
  EXPECT_EQ(d.details->count, 0x31u);
  EXPECT_EQ(d.details->segmentBytes, 0x32u);
  EXPECT_EQ(d.details->base, 0x33u);
  EXPECT_EQ(d.details->vectors, 0x34u);
  EXPECT_EQ(d.details->root, 0x35u);
  EXPECT_EQ(d.details->elementSize, 0x38u);
  EXPECT_EQ(d.details->counts, (std::vector<uint64_t>{0x36, 0x37}));
  Dispute without = someDispute();
  without.details = nullptr;
  EXPECT_EQ(decodeDispute(encode(without)).details, nullptr);
}

TEST(WireDispute, IsBounded) {
  internal::CheckDetails details;
  details.counts.assign(internal::CheckDetails::kMostCounts, 5);
  Dispute dispute;
  const auto encoded = [&] {
    dispute.details = std::make_shared<internal::CheckDetails>(details);
    return encode(dispute);
  };
  EXPECT_LE(encoded().size(), kMaxControlPayload);
  EXPECT_EQ(decodeDispute(encoded()).details->counts, details.counts);
  details.counts.push_back(5);
  EXPECT_THROW(decodeDispute(encoded()), WireError);
}

TEST(WireDispute, OtherLengthsAreRefused) {
  auto bytes = fromHex(kGoldenDispute);
  for (size_t n = 0; n < bytes.size(); n++) {
    EXPECT_THROW(decodeDispute(std::span(bytes).first(n)), WireError) << n;
  }
  bytes.push_back(0);
  EXPECT_THROW(decodeDispute(bytes), WireError);
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
