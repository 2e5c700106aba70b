// Which interface a TCP device chooses.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "gloo/common/error.h"
#include "gloo/transport/tcp/device.h"
#include "transport/tcp/interfaces.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::SocketAddress;
using transport::tcp::chooseInterface;
using transport::tcp::Interface;
using transport::tcp::Wanted;

SocketAddress address(const std::string& text) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    return {reinterpret_cast<sockaddr*>(&v4), sizeof(v4)};
  }
  EXPECT_EQ(1, ::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr));
  v6.sin6_family = AF_INET6;
  return {reinterpret_cast<sockaddr*>(&v6), sizeof(v6)};
}

// "node7" is this host; its name resolves to loopback, as Debian does it.
std::vector<SocketAddress> resolve(const std::string& host, int,
                                   std::string* why) {
  if (host == "node7" || host == "node7.example.org" || host == "127.0.1.1") {
    return {address("127.0.1.1")};
  }
  if (host == "node7-ib") {
    return {address("10.1.0.7")};
  }
  if (host == "localhost") {
    return {address("127.0.0.1")};
  }
  if (host == "node8") {
    return {address("10.0.0.8")};
  }
  *why = "no such name";
  return {};
}

std::vector<Interface> node7() {
  return {{"lo", address("127.0.0.1"), true, true},
          {"eth9", address("10.9.0.7"), false, false},
          {"eth1", address("169.254.3.4"), true, false},
          {"eth0", address("10.0.0.7"), true, false},
          {"ib0", address("10.1.0.7"), true, false},
          {"eth0", address("fd00::7"), true, false}};
}

Wanted name(const std::string& name, int family = AF_UNSPEC) {
  Wanted wanted;
  wanted.name = name;
  wanted.family = family;
  return wanted;
}

Wanted host(const std::string& host) {
  Wanted wanted;
  wanted.host = host;
  return wanted;
}

Wanted at(const std::string& text) {
  Wanted wanted;
  wanted.address = address(text);
  return wanted;
}

std::string chosen(const Wanted& wanted) {
  return chooseInterface(wanted, node7(), "node7", &resolve).address.str();
}

TEST(TcpInterfaces, AutomaticallyOneThatOtherHostsCanReach) {
  EXPECT_EQ("10.0.0.7:0", chosen({}));
  EXPECT_EQ("10.0.0.7:0", chosen(host("node7")));
  EXPECT_EQ("10.0.0.7:0", chosen(host("node7.example.org")));
  EXPECT_EQ("[fd00::7]:0", chosen(name("", AF_INET6)));
}

TEST(TcpInterfaces, TheOneThatTheHostNameResolvesTo) {
  const auto found = chooseInterface({}, node7(), "node7-ib", &resolve);
  EXPECT_EQ("ib0", found.name);
}

TEST(TcpInterfaces, LoopbackWhenAskedForOrWhenThereIsNothingElse) {
  EXPECT_EQ("127.0.0.1:0", chosen(name("lo")));
  EXPECT_EQ("127.0.0.1:0", chosen(host("localhost")));
  auto alone = node7();
  alone.resize(2);
  EXPECT_EQ("lo", chooseInterface({}, alone, "node7", &resolve).name);
}

// One of them is listed, but all can be bound.
TEST(TcpInterfaces, AnyAddressOfTheLoopbackNetwork) {
  EXPECT_EQ("127.0.1.1:0", chosen(host("127.0.1.1")));
  EXPECT_EQ("127.0.0.2:0", chosen(at("127.0.0.2")));
  for (const char* text : {"127.0.1.1", "127.0.0.2"}) {
    transport::tcp::attr wanted(text);
    EXPECT_NO_THROW(transport::tcp::CreateDevice(wanted));
  }
}

TEST(TcpInterfaces, ByNameAndByAddress) {
  EXPECT_EQ("10.0.0.7:0", chosen(name("eth0")));
  EXPECT_EQ("[fd00::7]:0", chosen(name("eth0", AF_INET6)));
  EXPECT_EQ("169.254.3.4:0", chosen(name("eth1")));
  EXPECT_EQ("10.1.0.7:0", chosen(host("node7-ib")));
  EXPECT_EQ("10.1.0.7:0", chosen(at("10.1.0.7")));
}

TEST(TcpInterfaces, ErrorsSayWhatWasTriedAndWhatThereIs) {
  const std::pair<Wanted, std::string> cases[] = {
      {name("eth9"), "called eth9"},
      {name("ib0", AF_INET6), "IPv6"},
      {host("node8"), "host name node8 (none of its addresses"},
      {host("nodeX"), "host name nodeX (no such name)"},
      {at("10.0.0.99"), "the address 10.0.0.99"}};
  for (const auto& [wanted, expected] : cases) {
    try {
      chosen(wanted);
      ADD_FAILURE() << expected;
    } catch (const InvalidOperationException& error) {
      const std::string text = error.what();
      EXPECT_NE(std::string::npos, text.find(expected)) << text;
      EXPECT_NE(std::string::npos, text.find("eth9 10.9.0.7 (down)")) << text;
    }
  }
}

TEST(TcpInterfaces, ThisHostHasLoopback) {
  const auto all = transport::tcp::listInterfaces();
  EXPECT_EQ("127.0.0.1:0", chooseInterface(host("127.0.0.1"), all, "anything",
                                           &transport::tcp::resolveHost)
                               .address.str());
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
