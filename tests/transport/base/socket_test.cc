// Descriptors, addresses, and errors that say what to do.
#include "transport/base/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>
#include <string>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::SocketAddress;
using transport::base::UniqueFd;

SocketAddress v4(const char* text, uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  EXPECT_EQ(1, ::inet_pton(AF_INET, text, &in.sin_addr));
  in.sin_port = htons(port);
  return {reinterpret_cast<sockaddr*>(&in), sizeof(in)};
}

SocketAddress v6(const char* text, uint16_t port) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  EXPECT_EQ(1, ::inet_pton(AF_INET6, text, &in.sin6_addr));
  in.sin6_port = htons(port);
  return {reinterpret_cast<sockaddr*>(&in), sizeof(in)};
}

TEST(SocketAddress, PrintsAsPeopleWriteIt) {
  EXPECT_EQ("10.0.0.1:4711", v4("10.0.0.1", 4711).str());
  EXPECT_EQ("[fd00::1]:80", v6("fd00::1", 80).str());
  EXPECT_EQ("no address", SocketAddress().str());
}

TEST(SocketAddress, KnowsLoopback) {
  EXPECT_TRUE(v4("127.0.0.1", 0).isLoopback());
  EXPECT_TRUE(v4("127.0.1.1", 0).isLoopback());
  EXPECT_FALSE(v4("10.127.0.1", 0).isLoopback());
  EXPECT_TRUE(v6("::1", 0).isLoopback());
  EXPECT_TRUE(v6("::ffff:127.0.0.1", 0).isLoopback());
  EXPECT_FALSE(v6("fd00::1", 0).isLoopback());
  EXPECT_FALSE(SocketAddress().isLoopback());
}

TEST(SocketAddress, TakesAPort) {
  for (SocketAddress address : {v4("10.0.0.1", 1), v6("fd00::1", 1)}) {
    address.setPort(65535);
    EXPECT_EQ(65535, address.port());
  }
}

// Over loopback.
struct Connection {
  UniqueFd listener = transport::base::listenOn(v4("127.0.0.1", 0), 8);
  UniqueFd caller;
  UniqueFd accepted;
};

void make(Connection& made) {
  auto& [listener, caller, accepted] = made;
  EXPECT_EQ(EAGAIN, transport::base::acceptFrom(listener.get(), &accepted));
  const int error = transport::base::startConnect(
      transport::base::localAddress(listener.get()), &caller);
  EXPECT_TRUE(error == 0 || error == EINPROGRESS) << error;
  pollfd ready{listener.get(), POLLIN, 0};
  ASSERT_EQ(1, ::poll(&ready, 1, 10000));
  ASSERT_EQ(0, transport::base::acceptFrom(listener.get(), &accepted));
}

TEST(Socket, ListensConnectsAndAcceptsWithoutBlocking) {
  Connection connection;
  ASSERT_NO_FATAL_FAILURE(make(connection));
  const auto& [listener, caller, accepted] = connection;
  for (const int fd : {listener.get(), caller.get(), accepted.get()}) {
    EXPECT_NE(0, ::fcntl(fd, F_GETFD) & FD_CLOEXEC);
    EXPECT_NE(0, ::fcntl(fd, F_GETFL) & O_NONBLOCK);
  }
  EXPECT_EQ(0, transport::base::takeSocketError(caller.get()));
  EXPECT_EQ(transport::base::peerAddress(accepted.get()).str(),
            transport::base::localAddress(caller.get()).str());
}

std::string congestionControlOf(int socket) {
  char name[32] = {};
  socklen_t length = sizeof(name);
  EXPECT_EQ(0,
            ::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &length));
  return name;
}

TEST(Socket, AConnectionWithinThisHostIsUnpaced) {
  Connection connection;
  ASSERT_NO_FATAL_FAILURE(make(connection));
  EXPECT_EQ("reno", congestionControlOf(connection.caller.get()));
  EXPECT_EQ("reno", congestionControlOf(connection.accepted.get()));
}

TEST(Socket, AConnectionToAnotherHostHasTheSystemsCongestionControl) {
  const UniqueFd fresh(::socket(AF_INET, SOCK_STREAM, 0));
  UniqueFd caller;
  // An address for documentation (RFC 5737): nobody answers there.
  (void)transport::base::startConnect(v4("192.0.2.1", 1), &caller);
  ASSERT_TRUE(caller);
  EXPECT_EQ(congestionControlOf(fresh.get()),
            congestionControlOf(caller.get()));
}

TEST(Socket, AnErrorNamesTheAddressAndTheRemedy) {
  const UniqueFd first = transport::base::listenOn(v4("127.0.0.1", 0), 1);
  const SocketAddress taken = transport::base::localAddress(first.get());
  const std::pair<SocketAddress, std::string> cases[] = {
      {taken, "choose another, or port 0"},
      {v4("192.0.2.77", 0), "no interface of this host"}};
  for (const auto& [address, remedy] : cases) {
    try {
      transport::base::listenOn(address, 1);
      ADD_FAILURE() << address.str();
    } catch (const IoException& error) {
      const std::string text = error.what();
      EXPECT_NE(std::string::npos, text.find(address.str())) << text;
      EXPECT_NE(std::string::npos, text.find("errno")) << text;
      EXPECT_NE(std::string::npos, text.find(remedy)) << text;
    }
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
