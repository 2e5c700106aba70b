#include "transport/auto/offer.h"

#include <gtest/gtest.h>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace transport::automatic {
namespace {

TEST(OfferTest, WhatIsEncodedIsFoundAgain) {
  const std::vector<char> large(1000, 'x');
  const auto offers =
      decodeOffers(encode({{"shm", {'a', 'b'}}, {"tcp", {}}, {"new", large}}));
  ASSERT_EQ(offers.size(), 3u);
  EXPECT_EQ(find(offers, "shm")->blob, (std::vector<char>{'a', 'b'}));
  EXPECT_TRUE(find(offers, "tcp")->blob.empty());
  EXPECT_EQ(find(offers, "new")->blob, large);
  EXPECT_EQ(find(offers, "ibverbs"), nullptr);
}

TEST(OfferTest, BytesThatEndEarlyAreRefused) {
  const std::vector<char> whole = encode({{"shm", {'a', 'b'}}});
  for (size_t n = 1; n < whole.size(); n++) {
    EXPECT_THROW(decodeOffers({whole.begin(),
                               whole.begin() + static_cast<ptrdiff_t>(n)}),
                 IoException)
        << n;
  }
  EXPECT_TRUE(decodeOffers({}).empty());
}

}  // namespace
}  // namespace transport::automatic
GLOO_NAMESPACE_END
