// What links offer each other in their hellos.
#include <gtest/gtest.h>

#include "gloo/common/error.h"
#include "transport/tcp/factory.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::tcp::agreeLimits;
using transport::tcp::capsFor;
using transport::tcp::encodeLimits;

TEST(TcpLimits, EagerMemoryOfAllPeersStaysWithinTheDevicesBudget) {
  for (const int peers : {1, 2, 3, 7, 63, 127, 511, 1023, 4095}) {
    const auto caps = capsFor(peers);
    EXPECT_LE(caps.creditBytes * static_cast<size_t>(peers), 64u << 20);
    EXPECT_GE(caps.creditBytes, 2 * caps.eagerBytes);
    EXPECT_GT(caps.eagerBytes, 0u);
  }
}

TEST(TcpLimits, TheSmallerOfBothSidesCounts) {
  const auto few = capsFor(1);
  const auto many = capsFor(1000);
  for (const auto& [mine, theirs] : {std::pair(few, many), {many, few}}) {
    const auto agreed = agreeLimits(mine, encodeLimits(theirs));
    EXPECT_EQ(many.eagerBytes, agreed.eagerBytes);
    EXPECT_EQ(many.creditBytes, agreed.creditBytes);
  }
}

TEST(TcpLimits, ImpossibleOnesAreRefused) {
  const auto caps = capsFor(1);
  auto bytes = encodeLimits(caps);
  bytes.pop_back();
  EXPECT_THROW(agreeLimits(caps, bytes), IoException);
  EXPECT_THROW(agreeLimits(caps, {}), IoException);
  auto noFrames = caps;
  noFrames.maxFrameBytes = 0;
  EXPECT_THROW(agreeLimits(caps, encodeLimits(noFrames)), IoException);
  auto noCredit = caps;
  noCredit.creditBytes = 0;
  EXPECT_THROW(agreeLimits(caps, encodeLimits(noCredit)), IoException);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
