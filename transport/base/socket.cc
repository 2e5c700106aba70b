#include "transport/base/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "gloo/common/error.h"
#include "gloo/internal/fork.h"
#include "transport/base/fork.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

constexpr int kSocketType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

// Best effort: a system that lacks the option works without it.
void setOption(int socket, int level, int name, int value) {
  (void)::setsockopt(socket, level, name, &value, sizeof(value));
}

// BBR, the default of many hosts, sends by a timer at the rate that it has
// found. Within a host that rate is how two processes happened to take turns,
// and the timer costs more than what it sends: where ranks share cores, large
// vectors took up to half as long again (measured; Reno and CUBIC are equal).
// Chosen before a connection is made, since the timer stays with one on which
// BBR has begun. tcp(7): every process may choose Reno.
constexpr std::string_view kUnpaced = "reno";

void setCongestionControl(int socket, std::string_view name) {
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                     static_cast<socklen_t>(name.size()));
}

// The system's, for a connection to another host.
const std::string& usualCongestionControl() {
  return internal::madeOnce([] {
    const UniqueFd socket(::socket(AF_INET, kSocketType, 0));
    char name[16] = {};  // TCP_CA_NAME_MAX
    socklen_t length = sizeof(name) - 1;
    (void)::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name,
                       &length);
    return std::string(name);
  });
}

bool endsOnThisHost(int socket) {
  const SocketAddress peer = peerAddress(socket);
  return peer.isLoopback() || peer.hasIpOf(localAddress(socket));
}

// The same before there is a connection to `address`: asked with a socket that
// sends nothing.
bool isOfThisHost(const SocketAddress& address) {
  if (address.isLoopback()) {
    return true;
  }
  const UniqueFd socket(
      ::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket && address.port() != 0 &&
         ::connect(socket.get(), address.get(), address.length()) == 0 &&
         endsOnThisHost(socket.get());
}

}  // namespace

UniqueFd::UniqueFd(int fd) : fd_(fd), generation_(processGeneration()) {
  registerDescriptor(fd);
}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    generation_ = other.generation_;
  }
  return *this;
}

void UniqueFd::reset() {
  const int fd = release();
  if (fd >= 0 && generation_ == processGeneration()) {
    ::close(fd);
  }
}

int UniqueFd::release() {
  const int fd = std::exchange(fd_, -1);
  // Before the close: a child must not close a number that is somebody else's.
  if (fd >= 0 && generation_ == processGeneration()) {
    unregisterDescriptor(fd);
  }
  return fd;
}

SocketAddress::SocketAddress(const sockaddr* address, socklen_t length)
    : length_(std::min<socklen_t>(length, sizeof(storage_))) {
  std::memcpy(&storage_, address, length_);
}

uint16_t SocketAddress::port() const {
  if (family() == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  }
  if (family() == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  }
  return 0;
}

void SocketAddress::setPort(uint16_t port) {
  if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
  } else if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
  }
}

bool SocketAddress::hasIpOf(const SocketAddress& other) const {
  SocketAddress mine = *this;
  SocketAddress theirs = other;
  mine.setPort(0);
  theirs.setPort(0);
  return mine.str() == theirs.str();
}

bool SocketAddress::isLoopback() const {
  if (family() == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&storage_);
    return (ntohl(in->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  if (family() == AF_INET6) {
    const auto& in =
        reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&in) ||
           (IN6_IS_ADDR_V4MAPPED(&in) && in.s6_addr[12] == IN_LOOPBACKNET);
  }
  return false;
}

std::string SocketAddress::str() const {
  char host[NI_MAXHOST];
  if (length_ == 0 || ::getnameinfo(get(), length_, host, sizeof(host), nullptr,
                                    0, NI_NUMERICHOST) != 0) {
    return "no address";
  }
  return family() == AF_INET6 ? MakeString("[", host, "]:", port())
                              : MakeString(host, ":", port());
}

UniqueFd listenOn(const SocketAddress& local, int backlog) {
  UniqueFd socket(::socket(local.family(), kSocketType, 0));
  if (socket) {
    // A restarted job may ask for the port that its predecessor just left.
    setOption(socket.get(), SOL_SOCKET, SO_REUSEADDR, local.port() != 0);
    // What it accepts inherits that: see acceptFrom.
    setCongestionControl(socket.get(), kUnpaced);
    if (::bind(socket.get(), local.get(), local.length()) == 0 &&
        ::listen(socket.get(), backlog) == 0) {
      return socket;
    }
  }
  const int error = errno;
  GLOO_THROW_IO_EXCEPTION("Cannot listen on ", local.str(), ": ",
                          errnoText(error), errnoRemedy(error));
}

int startConnect(const SocketAddress& to, UniqueFd* socket) {
  *socket = UniqueFd(::socket(to.family(), kSocketType, 0));
  if (!*socket) {
    return errno;
  }
  setNoDelay(socket->get());
  if (isOfThisHost(to)) {
    setCongestionControl(socket->get(), kUnpaced);
  }
  return ::connect(socket->get(), to.get(), to.length()) == 0 ? 0 : errno;
}

int acceptFrom(int listener, UniqueFd* socket) {
  int fd = -1;
  do {
    fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    return errno;
  }
  *socket = UniqueFd(fd);
  setNoDelay(fd);
  if (!endsOnThisHost(fd)) {
    setCongestionControl(fd, usualCongestionControl());
  }
  return 0;
}

int takeSocketError(int socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) {
    return errno;
  }
  return error;
}

SocketAddress localAddress(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket, address, &length) != 0) {
    return {};
  }
  return {address, length};
}

SocketAddress peerAddress(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (::getpeername(socket, address, &length) != 0) {
    return {};
  }
  return {address, length};
}

void setNoDelay(int socket) { setOption(socket, IPPROTO_TCP, TCP_NODELAY, 1); }

void setKeepalive(int socket, std::chrono::seconds limit) {
  // After one idle second a probe each second; the last one is the verdict.
  const int probes = std::max<int>(1, static_cast<int>(limit.count()) - 1);
  setOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPCNT, probes);
}

void setUserTimeout(int socket, std::chrono::milliseconds limit) {
  setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
            static_cast<int>(limit.count()));
}

std::string errnoText(int error) {
  return std::generic_category().message(error) + " (errno " +
         std::to_string(error) + ")";
}

std::string errnoRemedy(int error) {
  switch (error) {
    case EMFILE:
      return "; raise the limit of open files of this process (ulimit -n)";
    case ENFILE:
      return "; raise the system's limit of open files (sysctl fs.file-max)";
    case ETOOMANYREFS:
      return "; more descriptors are on their way between this user's "
             "processes than one may have open: raise that limit (ulimit -n)";
    case ENOBUFS:
      return "; the system is out of memory for sockets";
    case ENOMEM:
      return "; the system is out of memory";
    case EADDRINUSE:
      return "; another process uses this port: choose another, or port 0";
    case EADDRNOTAVAIL:
      return "; no interface of this host has this address, or all local ports "
             "are in use";
    default:
      return "";
  }
}

std::string watchRemedy(int error) {
  return error == ENOSPC ? "; this user watches as many sockets as it may: "
                           "raise that limit (sysctl "
                           "fs.epoll.max_user_watches)"
                         : errnoRemedy(error);
}

}  // namespace transport::base
GLOO_NAMESPACE_END
