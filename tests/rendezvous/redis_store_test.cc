#include "gloo/rendezvous/redis_store.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "gloo/common/error.h"
#include "rendezvous/socket.h"
#include "tests/rendezvous/redis_server.h"
#include "tests/rendezvous/store_kinds.h"

namespace gloo_test {

namespace {

using gloo::Deadline;
using gloo::rendezvous::RedisOptions;
using gloo::rendezvous::RedisStore;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string errorOf(const RedisOptions& options) {
  try {
    RedisStore store(options);
  } catch (const gloo::IoException& error) {
    return error.what();
  }
  return "";
}

TEST(RedisStoreTest, AnAbsentServerIsNamedWithTheReason) {
  RedisOptions options;
  options.host = "127.0.0.1";
  options.port = freePort();
  options.connectTimeout = milliseconds(100);
  const std::string error = errorOf(options);
  EXPECT_NE(error.find("127.0.0.1:" + std::to_string(options.port)),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("refused"), std::string::npos) << error;
  options.unixSocket = "/nonexistent/redis.sock";
  EXPECT_NE(errorOf(options).find("No such file"), std::string::npos);
}

TEST(RedisStoreTest, AWrongPasswordIsAnErrorAtOnce) {
  RedisServer server("secret");
  RedisOptions options = server.tcp();
  options.connectTimeout = seconds(60);
  const auto begin = std::chrono::steady_clock::now();
  options.password = "guess";
  EXPECT_NE(errorOf(options).find("WRONGPASS"), std::string::npos);
  options.password = "";
  EXPECT_NE(errorOf(options).find("NOAUTH"), std::string::npos);
  EXPECT_NE(errorOf(options).find("password"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
}

TEST(RedisStoreTest, AUserLogsInWithItsName) {
  RedisServer server("secret");
  RedisOptions options = server.tcp();
  options.user = "default";
  EXPECT_EQ(errorOf(options), "");
  options.user = "nobody";
  EXPECT_NE(errorOf(options).find("WRONGPASS"), std::string::npos);
}

TEST(RedisStoreTest, ACallSurvivesARestartOfTheServer) {
  RedisServer server;
  RedisStore store(server.tcp());
  store.set("k", bytesOf("before"));
  server.kill();
  std::thread caller([&] { store.set("k", bytesOf("after")); });
  server.start();
  caller.join();
  EXPECT_EQ(store.get("k"), bytesOf("after"));
}

TEST(RedisStoreTest, AWaitSurvivesARestartOfTheServer) {
  RedisServer server("secret");
  RedisStore waiting(server.unixSocket());
  bool found = false;
  std::thread waiter(
      [&] { found = waiting.wait_any({"k"}, Deadline::after(seconds(60))); });
  // The subscription shows that the wait has begun.
  {
    RedisStore store(server.unixSocket());
    EXPECT_FALSE(store.wait_any({"x"}, Deadline::after(milliseconds(50))));
  }
  server.kill();
  server.start();
  RedisStore store(server.tcp());
  store.set("k", bytesOf("v"));
  waiter.join();
  EXPECT_TRUE(found);
}

TEST(RedisStoreTest, AWaitWithoutServerEndsAtItsDeadline) {
  RedisServer server;
  RedisStore store(server.tcp());
  server.kill();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(store.wait_any({"k"}, Deadline::after(milliseconds(300))),
               gloo::IoException);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1300));
}

TEST(RedisStoreTest, AWaitThatIsShorterThanTheServersAnswerIsNoErrorOfIt) {
  RedisServer server;
  RedisStore store(server.tcp());
  store.set("there", bytesOf("v"));
  const auto waitWhileItPauses = [&](const std::string& key) {
    ChildProcess pause({"redis-cli", "-p", std::to_string(server.tcp().port),
                        "client", "pause", "200"});
    EXPECT_EQ(pause.wait(), 0);
    return store.wait_any({key}, Deadline::after(milliseconds(20)));
  };
  EXPECT_FALSE(waitWhileItPauses("absent"));  // and it subscribes
  EXPECT_TRUE(waitWhileItPauses("there"));    // subscribed
}

TEST(RedisStoreTest, ValuesOfOtherProgramsAreNoticed) {
  RedisServer server;
  RedisStore store(server.tcp());
  // redis-cli publishes nothing.
  ChildProcess other(
      {"redis-cli", "-p", std::to_string(server.tcp().port), "set", "k", "v"});
  EXPECT_TRUE(store.wait_any({"k"}, Deadline::after(seconds(20))));
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(store.get("k"), bytesOf("v"));
}

TEST(RedisStoreTest, AUserWithoutChannelsWaitsToo) {
  RedisServer server;
  ChildProcess acl({"redis-cli", "-p", std::to_string(server.tcp().port), "acl",
                    "setuser", "limited", "on", ">pw", "~*", "+@all",
                    "resetchannels"});
  ASSERT_EQ(acl.wait(), 0);
  RedisOptions options = server.tcp();
  options.user = "limited";
  options.password = "pw";
  RedisStore store(options);
  RedisStore other(options);
  std::thread writer([&] { other.set("k", bytesOf("v")); });
  EXPECT_TRUE(store.wait_any({"k"}, Deadline::after(seconds(20))));
  writer.join();
}

TEST(RedisStoreTest, AServerThatIsNoRedisIsAnErrorAtOnce) {
  const auto listener = gloo::rendezvous::listenTcp("127.0.0.1", 0);
  std::thread impostor([&] {
    ASSERT_TRUE(gloo::rendezvous::pollUntil(listener.get(), POLLIN,
                                            Deadline::after(seconds(20))));
    gloo::rendezvous::UniqueFd client(
        accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
    gloo::rendezvous::sendAll(client.get(),
                              std::string("HTTP/1.1 400 Bad Request\r\n\r\n"),
                              Deadline::after(seconds(5)));
    char bytes[100];
    gloo::rendezvous::recvSome(client.get(), bytes,
                               Deadline::after(seconds(5)));
  });
  RedisOptions options;
  options.host = "127.0.0.1";
  options.port = gloo::rendezvous::localPort(listener.get());
  EXPECT_NE(errorOf(options).find("not a Redis server"), std::string::npos);
  impostor.join();
}

}  // namespace

}  // namespace gloo_test
