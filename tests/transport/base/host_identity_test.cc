// Which ranks take themselves to be on one host.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "transport/base/device.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

uint64_t identityOf(const std::string& hostId) {
  ::setenv("GLOO_HOST_ID", hostId.c_str(), 1);
  const uint64_t identity = hostIdentity();
  ::unsetenv("GLOO_HOST_ID");
  return identity;
}

TEST(HostIdentityTest, IsEqualForEqualNamesOnly) {
  EXPECT_EQ(identityOf("a"), identityOf("a"));
  EXPECT_NE(identityOf("a"), identityOf("b"));
}

// Whatever is appended to two texts with the same checksum, they keep it.
TEST(HostIdentityTest, HasMoreBitsThanAChecksum) {
  const std::string one = "host-5a142a5546";
  const std::string other = "host-5f9e54009d";
  ASSERT_EQ(crc32c(one), crc32c(other));
  EXPECT_NE(identityOf(one), identityOf(other));
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
