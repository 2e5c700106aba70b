#include "rendezvous/socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <vector>

namespace gloo_test {

namespace {

using gloo::Deadline;
using gloo::rendezvous::connectToOneOf;
using gloo::rendezvous::listenTcp;
using gloo::rendezvous::localPort;
using gloo::rendezvous::pollUntil;
using gloo::rendezvous::UniqueFd;
using std::chrono::milliseconds;
using std::chrono::seconds;

// An address of 127.0.0.1, as a resolver gives it.
struct Address {
  explicit Address(int port) {
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<uint16_t>(port));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    info.ai_family = AF_INET;
    info.ai_socktype = SOCK_STREAM;
    info.ai_addr = reinterpret_cast<sockaddr*>(&where);
    info.ai_addrlen = sizeof where;
  }
  Address(const Address&) = delete;
  Address& operator=(const Address&) = delete;

  sockaddr_in where{};
  addrinfo info{};
};

// Drops whoever calls: nobody accepts, and its backlog is full.
class SilentListener {
 public:
  SilentListener() {
    ::listen(listener_.get(), 0);
    Address address(port());
    bool answered = true;
    for (int i = 0; i < 100 && answered; i++) {
      callers_.emplace_back(
          ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const int fd = callers_.back().get();
      ::connect(fd, address.info.ai_addr, address.info.ai_addrlen);
      answered = pollUntil(fd, POLLOUT, Deadline::after(milliseconds(200)));
    }
    EXPECT_FALSE(answered);
  }
  int port() const { return localPort(listener_.get()); }

 private:
  UniqueFd listener_ = listenTcp("127.0.0.1", 0);
  std::vector<UniqueFd> callers_;
};

TEST(ConnectTest, AnAddressThatIsSilentLeavesTimeForTheNext) {
  const SilentListener silent;
  const UniqueFd listener = listenTcp("127.0.0.1", 0);
  Address first(silent.port());
  Address second(localPort(listener.get()));
  first.info.ai_next = &second.info;
  const Deadline deadline = Deadline::after(seconds(2));
  EXPECT_TRUE(connectToOneOf(&first.info, deadline));
  // On another host the next one could not answer in no time.
  EXPECT_FALSE(deadline.expired());
}

// As that of IPv6 on a host that has it disabled.
void makeUnusable(Address& address) { address.info.ai_family = AF_MAX; }

TEST(ConnectTest, AnAddressOfAnUnusableFamilyIsPassedOver) {
  const UniqueFd listener = listenTcp("127.0.0.1", 0);
  Address first(localPort(listener.get()));
  makeUnusable(first);
  Address second(localPort(listener.get()));
  first.info.ai_next = &second.info;
  EXPECT_TRUE(connectToOneOf(&first.info, Deadline::after(seconds(20))));
}

std::string errorOf(const Address& first) {
  try {
    connectToOneOf(&first.info, Deadline::after(seconds(20)));
  } catch (const gloo::rendezvous::TransientError& error) {
    return error.what();
  }
  return "";
}

TEST(ConnectTest, AnAddressThatCouldBeTriedIsWhatAnErrorIsAbout) {
  const int free = localPort(listenTcp("127.0.0.1", 0).get());
  for (const bool unusableFirst : {false, true}) {
    Address first(free);
    Address second(free);
    makeUnusable(unusableFirst ? first : second);
    first.info.ai_next = &second.info;
    const std::string error = errorOf(first);
    EXPECT_NE(error.find("refused"), std::string::npos) << error;
  }
}

TEST(ConnectTest, TheFirstAddressOfTwoIsWhatAnErrorIsAbout) {
  Address first(localPort(listenTcp("127.0.0.1", 0).get()));
  Address second(0);
  second.where.sin_addr.s_addr = htonl(INADDR_BROADCAST);  // unreachable
  first.info.ai_next = &second.info;
  const std::string error = errorOf(first);
  EXPECT_NE(error.find("refused"), std::string::npos) << error;
}

// A free port of those that the system gives to clients: even ones first.
int freeClientPort() {
  for (;;) {
    const int port = localPort(listenTcp("127.0.0.1", 0).get()) & ~1;
    try {
      listenTcp("127.0.0.1", port);
      return port;
    } catch (const gloo::IoException&) {  // somebody has it
    }
  }
}

// As a client that starts before its server, if it tries often enough.
TEST(ConnectTest, ACallerIsNotConnectedToItself) {
  Address nobody(freeClientPort());
  const Deadline deadline = Deadline::after(seconds(20));
  for (int i = 0; i < 40000 && !deadline.expired(); i++) {
    ASSERT_THROW(connectToOneOf(&nobody.info, deadline),
                 gloo::rendezvous::TransientError)
        << "call " << i;
  }
}

}  // namespace

}  // namespace gloo_test
