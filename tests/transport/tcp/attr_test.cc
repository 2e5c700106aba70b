// Attributes of a TCP device as callers hand them over: found by
// CreateDeviceAttr, filled by themselves, or those of a socket of theirs.
#include "gloo/transport/tcp/attr.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gloo/common/error.h"
#include "gloo/transport/tcp/device.h"
#include "tests/transport/base/loopback.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::tcp::attr;
using transport::tcp::CreateDevice;
using transport::tcp::CreateDeviceAttr;

// "127.0.0.1:0"
std::string addressIn(const attr& found) {
  return transport::base::SocketAddress(
             reinterpret_cast<const sockaddr*>(&found.ai_addr),
             static_cast<socklen_t>(found.ai_addrlen))
      .str();
}

// "127.0.0.1", of "..., listening on 127.0.0.1:4711"
std::string listensOn(const attr& wanted) {
  const std::string before = "listening on ";
  const std::string text = CreateDevice(wanted)->str();
  const size_t at = text.find(before) + before.size();
  return text.substr(at, text.find_last_of(':') - at);
}

// A stream socket of the caller's.
class CallersSocket {
 public:
  explicit CallersSocket(int family)
      : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~CallersSocket() { ::close(fd_); }
  CallersSocket(const CallersSocket&) = delete;
  CallersSocket& operator=(const CallersSocket&) = delete;

  int fd() const { return fd_; }
  // To any port of 127.0.0.<last>.
  void bindTo(int last) const {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr =
        htonl((INADDR_LOOPBACK & ~0xffu) | static_cast<uint32_t>(last));
    ASSERT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&in), sizeof(in)), 0);
  }

 private:
  const int fd_;
};

attr ofSocket(int fd) {
  attr wanted("localhost");
  wanted.ai_fd = fd;
  return wanted;
}

TEST(TcpAttr, SaysWhatWasFound) {
  const attr found = CreateDeviceAttr(attr("127.0.0.3"));
  EXPECT_EQ(found.hostname, "127.0.0.3");
  EXPECT_EQ(found.iface, "lo");
  EXPECT_EQ(found.ai_family, AF_INET);
  EXPECT_EQ(found.ai_socktype, SOCK_STREAM);
  EXPECT_EQ(found.ai_protocol, IPPROTO_TCP);
  EXPECT_EQ(found.ai_fd, -1);
  EXPECT_EQ(addressIn(found), "127.0.0.3:0");
}

TEST(TcpAttr, WhatWasFoundMakesTheSameDevice) {
  attr found = CreateDeviceAttr(attr("127.0.0.3"));
  EXPECT_EQ(listensOn(found), "127.0.0.3");
  EXPECT_EQ(addressIn(CreateDeviceAttr(found)), "127.0.0.3:0");
  found.hostname.clear();
  found.iface.clear();
  EXPECT_EQ(listensOn(found), "127.0.0.3");
}

TEST(TcpAttr, AnAddressComesBeforeInterfaceAndHost) {
  attr wanted("no-such-host.invalid");
  wanted.iface = "no such interface";
  const auto address = loopback();
  std::memcpy(&wanted.ai_addr, address.get(), address.length());
  EXPECT_THROW(CreateDevice(wanted), InvalidOperationException);
  wanted.ai_addrlen = static_cast<int>(address.length());
  EXPECT_EQ(listensOn(wanted), "127.0.0.1");
  EXPECT_EQ(CreateDeviceAttr(wanted).iface, "lo");
}

TEST(TcpAttr, TheAddressOfABoundSocketComesFirst) {
  const CallersSocket socket(AF_INET);
  socket.bindTo(4);
  attr wanted = ofSocket(socket.fd());
  const auto other = loopback();
  std::memcpy(&wanted.ai_addr, other.get(), other.length());
  wanted.ai_addrlen = static_cast<int>(other.length());
  EXPECT_EQ(addressIn(CreateDeviceAttr(wanted)), "127.0.0.4:0");
  EXPECT_EQ(listensOn(wanted), "127.0.0.4");
  int listens = -1;  // it stays the caller's, and as it was
  socklen_t length = sizeof(listens);
  EXPECT_EQ(
      ::getsockopt(socket.fd(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length),
      0);
  EXPECT_EQ(listens, 0);
}

void expectRefused(int fd, const std::string& why) {
  try {
    CreateDevice(ofSocket(fd));
    ADD_FAILURE() << why;
  } catch (const InvalidOperationException& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("attr.ai_fd = " + std::to_string(fd) + " " + why),
              std::string::npos)
        << text;
  }
}

TEST(TcpAttr, WhatIsNoBoundSocketIsRefused) {
  const std::string why = "is not a bound socket";
  const int closed = [] { return CallersSocket(AF_INET).fd(); }();
  expectRefused(closed, why);
  for (const int family : {AF_INET, AF_INET6, AF_UNIX}) {
    const CallersSocket unbound(family);
    if (unbound.fd() >= 0) {  // a kernel may be without IPv6
      expectRefused(unbound.fd(), why);
    }
  }
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  expectRefused(ends[0], why);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
