// What one client can make the TCP store's server do.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/rendezvous/tcp_store.h"
#include "rendezvous/socket.h"
#include "rendezvous/tcp_store_values.h"
#include "rendezvous/tcp_store_wire.h"
#include "tests/rendezvous/store_kinds.h"

namespace gloo_test {

namespace {

using namespace gloo::rendezvous;
using gloo::Deadline;
using std::chrono::seconds;

Deadline soon() { return Deadline::after(seconds(20)); }

void send(const UniqueFd& fd, const tcpstore::Request& request) {
  sendAll(fd.get(),
          tcpstore::encodeFrame(static_cast<uint8_t>(request.op), 7,
                                tcpstore::encodeRequest(request)),
          soon());
}

class TcpStoreLimitsTest : public testing::Test {
 protected:
  UniqueFd rawConnection() {
    return connectTcp("127.0.0.1", server_.port(), soon());
  }

  TcpStoreServer server_{"127.0.0.1", 0};
  TcpStore store_{"127.0.0.1", server_.port()};
};

TEST_F(TcpStoreLimitsTest, ARequestWithTooManyKeysIsRefused) {
  tcpstore::Request request;
  request.op = tcpstore::Op::kWaitAny;
  request.milliseconds = 20000;
  request.keys.resize(TcpStoreServer::kMaxRequestKeys + 1);
  const UniqueFd fd = rawConnection();
  send(fd, request);
  std::string text;
  char bytes[1000];
  EXPECT_THROW(
      for (;;) { text.append(bytes, recvSome(fd.get(), bytes, soon())); },
      TransientError);
  EXPECT_NE(text.find("keys"), std::string::npos) << text;
  EXPECT_THROW(store_.peek(request.keys), gloo::InvalidOperationException);
  request.keys.pop_back();
  EXPECT_EQ(store_.peek(request.keys).size(), request.keys.size());
}

TEST(TcpStoreValuesTest, ManySmallValuesFillTheStoreToo) {
  constexpr size_t kSmall = 100;
  tcpstore::Values values;
  values.set("large", std::vector<char>(TcpStoreServer::kMaxStoredBytes -
                                        kSmall * TcpStoreServer::kEntryBytes));
  size_t stored = 0;
  const auto fill = [&] {
    for (; stored < kSmall; stored++) {
      values.set(std::to_string(stored), {});
    }
  };
  EXPECT_THROW(fill(), gloo::IoException);
  EXPECT_GT(stored, kSmall - 10);
  values.set("0", {});  // takes no more than it has
}

TEST(TcpStoreValuesTest, WhatIsAppendedCounts) {
  tcpstore::Values values;
  const std::vector<char> part(TcpStoreServer::kMaxRequestBytes);
  size_t parts = 0;
  EXPECT_THROW(
      for (; parts <= 16; parts++) { values.append("k", part); },
      gloo::IoException);
  EXPECT_EQ(parts, 15U);
  EXPECT_EQ(values.at("k").size(), 15 * part.size());
}

// Until there are that many, or the connection has ended.
size_t receive(const UniqueFd& fd, size_t wanted) {
  std::vector<char> bytes(size_t{1} << 20);
  size_t got = 0;
  try {
    while (got < wanted) {
      got += recvSome(fd.get(), bytes, soon());
    }
  } catch (const TransientError& error) {
    EXPECT_EQ(std::string(error.what()).find("Timed out"), std::string::npos);
  }
  return got;
}

// Each asks for half of what there can be, and does not read it.
TEST_F(TcpStoreLimitsTest, AnswersThatNobodyReadsCostTheConnection) {
  tcpstore::Request request;
  request.op = tcpstore::Op::kPeek;
  const std::vector<char> value(TcpStoreServer::kMaxRequestBytes - 200);
  for (int i = 0; i < 8; i++) {
    request.keys.push_back(std::to_string(i));
    store_.set(request.keys.back(), value);
  }
  const size_t answer = request.keys.size() * value.size();
  std::vector<UniqueFd> clients;
  for (size_t i = 0; i < TcpStoreServer::kMaxHeldBytes / answer + 2; i++) {
    clients.push_back(rawConnection());
    send(clients.back(), request);
    EXPECT_TRUE(pollUntil(clients.back().get(), POLLIN, soon()));
  }
  store_.set("alive", bytesOf("yes"));
  EXPECT_EQ(store_.get("alive"), bytesOf("yes"));
  const auto dropped = std::count_if(
      clients.begin(), clients.end(),
      [&](const UniqueFd& fd) { return receive(fd, answer) < answer; });
  EXPECT_GE(dropped, 1);
  // (Within the 8 s after which a client that takes nothing is gone anyway.)
  EXPECT_LT(static_cast<size_t>(dropped), clients.size());
}

// The server's end of a connection of this process; -1 if there is none.
int acceptedFrom(const UniqueFd& client) {
  for (int fd = 0; fd < 1000; fd++) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        peer.sin_family == AF_INET &&
        ntohs(peer.sin_port) == localPort(client.get())) {
      return fd;
    }
  }
  return -1;
}

TEST_F(TcpStoreLimitsTest, AClientWhoseHostIsGoneIsForgotten) {
  const UniqueFd fd = rawConnection();
  tcpstore::Request request;
  request.op = tcpstore::Op::kPeek;
  send(fd, request);
  ASSERT_TRUE(pollUntil(fd.get(), POLLIN, soon()));  // it was accepted
  const int accepted = acceptedFrom(fd);
  ASSERT_GE(accepted, 0);
  int on = 0;
  socklen_t length = sizeof on;
  ASSERT_EQ(::getsockopt(accepted, SOL_SOCKET, SO_KEEPALIVE, &on, &length), 0);
  EXPECT_NE(on, 0);
}

}  // namespace

}  // namespace gloo_test
