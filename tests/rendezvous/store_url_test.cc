#include "rendezvous/store_url.h"

#include <gtest/gtest.h>

#include "gloo/common/error.h"

namespace gloo_test {

namespace {

using gloo::rendezvous::parseStoreUrl;
using gloo::rendezvous::StoreUrl;

TEST(StoreUrlTest, AFileUrlNamesADirectory) {
  const StoreUrl url = parseStoreUrl("file:///shared/job 1");
  EXPECT_EQ(url.kind, StoreUrl::Kind::kFile);
  EXPECT_EQ(url.path, "/shared/job 1");
}

TEST(StoreUrlTest, ARedisUrlHasHostPortUserAndPassword) {
  StoreUrl url = parseStoreUrl("redis://us%65r:p%40ss:w@host:1234");
  EXPECT_EQ(url.kind, StoreUrl::Kind::kRedis);
  EXPECT_EQ(url.user, "user");
  EXPECT_EQ(url.password, "p@ss:w");
  EXPECT_EQ(url.host, "host");
  EXPECT_EQ(url.port, 1234);
  url = parseStoreUrl("redis://secret@host");
  EXPECT_EQ(url.user, "");
  EXPECT_EQ(url.password, "secret");
  EXPECT_EQ(url.port, 6379);
  url = parseStoreUrl("redis+unix://:pw@/run/redis.sock");
  EXPECT_EQ(url.kind, StoreUrl::Kind::kRedisUnix);
  EXPECT_EQ(url.password, "pw");
  EXPECT_EQ(url.path, "/run/redis.sock");
}

TEST(StoreUrlTest, TheSocketOfARedisMayHaveAnAtSign) {
  StoreUrl url = parseStoreUrl("redis+unix:///run/redis/redis@6379.sock");
  EXPECT_EQ(url.password, "");
  EXPECT_EQ(url.path, "/run/redis/redis@6379.sock");
  url = parseStoreUrl("redis+unix://us:p@/ss@/run/redis@6379.sock");
  EXPECT_EQ(url.user, "us");
  EXPECT_EQ(url.password, "p@/ss");
  EXPECT_EQ(url.path, "/run/redis@6379.sock");
}

TEST(StoreUrlTest, ATcpUrlTakesNamesAndAddresses) {
  StoreUrl url = parseStoreUrl("tcp://node7:29400");
  EXPECT_EQ(url.kind, StoreUrl::Kind::kTcp);
  EXPECT_EQ(url.host, "node7");
  EXPECT_EQ(url.port, 29400);
  url = parseStoreUrl("tcp://[fe80::1]:1/");
  EXPECT_EQ(url.host, "fe80::1");
  EXPECT_EQ(url.port, 1);
}

TEST(StoreUrlTest, ABadUrlIsExplainedInOneLineWithoutItsPassword) {
  const std::string zero("file:///a\0b", 11);
  for (const std::string& bad : {std::string(),
                                 std::string("/tmp/x"),
                                 std::string("file://relative"),
                                 std::string("file://"),
                                 std::string("http://host:80"),
                                 std::string("tcp://host"),
                                 std::string("tcp://host:"),
                                 std::string("tcp://host:99999"),
                                 std::string("tcp://host:-1"),
                                 std::string("tcp://host:1x"),
                                 std::string("tcp://:1"),
                                 std::string("tcp://[::1:5"),
                                 std::string("tcp://[::1]x5"),
                                 std::string("tcp://a/b:5"),
                                 std::string("redis://us:hidden%4@h"),
                                 std::string("redis://us:hidden%@h"),
                                 std::string("redis://hidden@"),
                                 std::string("redis+unix://us:hidden@relative"),
                                 std::string("redis:/user:hidden@host"),
                                 std::string("redis:user:hidden@host"),
                                 std::string("redis//:hidden@host"),
                                 std::string("us:hidden@h"),
                                 std::string("us:hidden@h://x"),
                                 std::string("redis:us:hidden://x@h"),
                                 std::string("line\nbreak://x"),
                                 std::string(10000, 'x'),
                                 zero}) {
    try {
      parseStoreUrl(bad);
      ADD_FAILURE() << "accepted: " << bad;
    } catch (const gloo::InvalidOperationException& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_EQ(text.find("hidden"), std::string::npos) << text;
      EXPECT_LT(text.size(), 600U);
    }
  }
}

}  // namespace

}  // namespace gloo_test
