#include "gloo/rendezvous/redis_store.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "gloo/common/error.h"
#include "rendezvous/redis_connection.h"
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

// Runs redis-cli.
void redisCli(const RedisServer& server, std::vector<std::string> words) {
  std::vector<std::string> argv{"redis-cli", "-p",
                                std::to_string(server.tcp().port)};
  argv.insert(argv.end(), words.begin(), words.end());
  ChildProcess cli(argv);
  EXPECT_EQ(cli.wait(), 0);
}

// The text of its IoException, which comes at once.
std::string errorAtOnce(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  try {
    call();
  } catch (const gloo::IoException& error) {
    text = error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  return text;
}

TEST(RedisStoreTest, AKeyThatIsNoStringIsAnErrorAtOnce) {
  RedisServer server;
  RedisStore store(server.tcp());
  store.set("there", bytesOf("v"));
  redisCli(server, {"rpush", "queue", "x"});
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { store.wait({"queue"}, seconds(30)); },
           [&] { store.get("queue"); },
           [&] {
             store.multi_get({"there", "queue", "absent"});
           },
           [&] {
             store.multi_get({"there", "absent", "queue", "absent too"});
           }}) {
    const std::string error = errorAtOnce(call);
    EXPECT_NE(error.find("WRONGTYPE"), std::string::npos) << error;
    EXPECT_NE(error.find("queue holds a list"), std::string::npos) << error;
  }
}

TEST(RedisStoreTest, AValueThatTheServerDoesNotTakeIsAnErrorAtOnce) {
  RedisServer server;
  redisCli(server, {"config", "set", "proto-max-bulk-len", "1mb"});
  RedisStore store(server.tcp());
  // Some of these the kernel takes before the server hangs up.
  for (const size_t megabytes : {2, 16, 64}) {
    const std::vector<char> value(megabytes << 20);
    const std::string error = errorAtOnce([&] { store.set("k", value); });
    EXPECT_NE(error.find("proto-max-bulk-len"), std::string::npos) << error;
  }
  store.set("k", bytesOf("v"));
  EXPECT_EQ(store.get("k"), bytesOf("v"));
}

// Connections that the server has seen, without that which asks.
int connectionsOf(const RedisServer& server) {
  const Deadline deadline = Deadline::after(seconds(20));
  gloo::rendezvous::RedisConnection asking(server.tcp(), deadline);
  asking.send({{"INFO", "stats"}}, deadline);
  const auto reply = asking.receive(deadline);
  const std::string text(reply->str, reply->len);
  const std::string name = "total_connections_received:";
  return std::stoi(text.substr(text.find(name) + name.size())) - 1;
}

TEST(RedisStoreTest, ASubscriptionIsUsedAgainWhateverItHasHeard) {
  RedisServer server;
  RedisStore store(server.tcp());
  RedisStore other(server.tcp());
  const auto wait = [&] {
    return store.wait_any({"absent"}, Deadline::after(milliseconds(1)));
  };
  EXPECT_FALSE(wait());  // and it subscribes
  const int before = connectionsOf(server);
  for (int i = 0; i < 100; i++) {
    other.set("k", bytesOf("v"));
    EXPECT_FALSE(wait());
  }
  // (That of the first count is one.)
  EXPECT_LE(connectionsOf(server) - before, 1);
  store.set("absent", bytesOf("v"));
  EXPECT_TRUE(wait());
}

TEST(RedisStoreTest, ASubscriptionThatEndedIsMadeAgain) {
  RedisServer server;
  RedisStore store(server.tcp());
  const auto wait = [&] {
    return store.wait_any({"absent"}, Deadline::after(milliseconds(1)));
  };
  EXPECT_FALSE(wait());
  const int before = connectionsOf(server);
  redisCli(server, {"publish", "gloo:set", "k"});  // unread, and then the end
  redisCli(server, {"client", "kill", "type", "pubsub"});
  EXPECT_FALSE(wait());
  // The first count, redis-cli twice, and the subscription.
  EXPECT_EQ(connectionsOf(server) - before, 4);
}

// A Redis without keys; whoever subscribes gets half a message.
class HalfHeartedServer {
 public:
  ~HalfHeartedServer() {
    stop_ = true;
    thread_.join();
  }
  RedisOptions options() const {
    RedisOptions options;
    options.host = "127.0.0.1";
    options.port = gloo::rendezvous::localPort(listener_.get());
    return options;
  }

 private:
  using UniqueFd = gloo::rendezvous::UniqueFd;

  void run() {
    std::vector<UniqueFd> clients;
    while (!stop_) {
      const Deadline soon = Deadline::after(milliseconds(5));
      if (gloo::rendezvous::pollUntil(listener_.get(), POLLIN, soon)) {
        clients.emplace_back(
            ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
      }
      for (const UniqueFd& client : clients) {
        std::array<char, 1000> bytes{};
        const ssize_t got = ::recv(client.get(), bytes.data(), 1000, 0);
        if (got > 0) {
          answer(client.get(), {bytes.data(), static_cast<size_t>(got)});
        }
      }
    }
  }

  static void answer(int client, const std::string& request) {
    const Deadline soon = Deadline::after(seconds(20));
    const auto say = [&](const std::string& text) {
      gloo::rendezvous::sendAll(client, text, soon);
    };
    if (request.find("SUBSCRIBE") != std::string::npos) {
      say("*3\r\n$9\r\nsubscribe\r\n$8\r\ngloo:set\r\n:1\r\n");
      std::this_thread::sleep_for(milliseconds(20));  // alone
      say("*3\r\n");
    } else {
      say(request.find("PING") != std::string::npos ? "+PONG\r\n" : ":0\r\n");
    }
  }

  const UniqueFd listener_ = gloo::rendezvous::listenTcp("127.0.0.1", 0);
  std::atomic<bool> stop_{false};
  std::thread thread_{[this] { run(); }};
};

TEST(RedisStoreTest, AWaitEndsInTimeThoughAMessageDoesNot) {
  const HalfHeartedServer server;
  RedisStore store(server.options());
  // (Else it waits for the rest, for the second that an answer may be late.)
  const Deadline end = Deadline::after(milliseconds(500));
  EXPECT_FALSE(store.wait_any({"k"}, end));
  EXPECT_LT(Deadline::Clock::now() - end.at(), milliseconds(900));
}

}  // namespace

}  // namespace gloo_test
