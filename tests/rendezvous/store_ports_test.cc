// Which ports stores and their servers take.
#include <gtest/gtest.h>

#include <functional>

#include "gloo/common/error.h"
#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/socket.h"
#include "tests/rendezvous/store_kinds.h"
#if GLOO_USE_REDIS
#include "gloo/rendezvous/redis_store.h"
#endif

namespace gloo_test {

namespace {

using namespace gloo::rendezvous;

void expectRefused(const std::function<void(int)>& open, int port) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    open(port);
    ADD_FAILURE() << "port " << port << " was taken";
  } catch (const gloo::InvalidOperationException& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("port " + std::to_string(port)), std::string::npos)
        << text;
    EXPECT_NE(text.find("65535"), std::string::npos) << text;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(StorePortsTest, APortThatDoesNotExistIsTheCallersFault) {
  // With the last 16 bits of one that is served.
  const TcpStoreServer server("127.0.0.1", 0);
  for (const int port : {-1, 65536, 65536 + server.port()}) {
    expectRefused([](int bad) { TcpStore store("127.0.0.1", bad); }, port);
    expectRefused([](int bad) { TcpStoreServer other("127.0.0.1", bad); },
                  port);
#if GLOO_USE_REDIS
    expectRefused([](int bad) { RedisStore store("127.0.0.1", bad); }, port);
#endif
  }
  expectRefused([](int bad) { TcpStore store("127.0.0.1", bad); }, 0);
}

TEST(StorePortsTest, RankZeroServesOnePortOnEachAddress) {
  const int port = localPort(listenTcp("127.0.0.1", 0).get());
  const auto open = [port](const std::string& host) {
    return openStore("tcp://" + host + ":" + std::to_string(port), 0);
  };
  const auto first = open("127.0.0.1");
  first->set("k", bytesOf("first"));
  open("127.0.0.2")->set("k", bytesOf("second"));
  EXPECT_EQ(open("127.0.0.1")->get("k"), bytesOf("first"));
  EXPECT_EQ(open("127.0.0.2")->get("k"), bytesOf("second"));
}

TEST(StorePortsTest, WhatIsServedOnAllAddressesIsServedOnEach) {
  const std::string port = std::to_string(localPort(listenTcp("", 0).get()));
  // A name is bound on all of them.
  openStore("tcp://LOCALHOST:" + port, 0)->set("k", bytesOf("v"));
  EXPECT_EQ(openStore("tcp://127.0.0.1:" + port, 0)->get("k"), bytesOf("v"));
}

}  // namespace

}  // namespace gloo_test
