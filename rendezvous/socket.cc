#include "rendezvous/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <system_error>

#include "rendezvous/operation_deadline.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

// Leaked on purpose: the fork handler may run during static destruction.
struct Descriptors {
  std::mutex mutex;
  std::set<int> open;
  // Counts forks; a descriptor of an older generation is not this process's.
  std::atomic<int> generation{0};
};

Descriptors& descriptors() {
  static Descriptors* const all = std::make_unique<Descriptors>().release();
  return *all;
}

void afterForkInChild() {
  Descriptors& all = descriptors();
  for (const int fd : all.open) {
    ::close(fd);
  }
  all.open.clear();
  all.generation++;
  all.mutex.unlock();
}

// At load time: a fork waits for the static above as well.
[[maybe_unused]] const int installed =
    pthread_atfork([] { descriptors().mutex.lock(); },
                   [] { descriptors().mutex.unlock(); }, &afterForkInChild);

// A larger number would be cut to 16 bits, and mean another port.
void checkPort(int port, int lowest) {
  constexpr int kHighest = 65535;
  if (port < lowest || port > kHighest) {
    throw InvalidOperationException(
        MakeString("port ", port, " does not exist: give one from ", lowest,
                   " to ", kHighest));
  }
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw TransientError(
        MakeString("cannot resolve host ", host, ": ", gai_strerror(error)));
  }
  return AddressList(found, &freeaddrinfo);
}

// None where this host has none of the family.
UniqueFd makeSocket(int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int error = errno;
  if (!fd && error != EAFNOSUPPORT) {
    throw TransientError(MakeString("cannot make a socket: ", errnoText(error),
                                    "; see ulimit -n"));
  }
  return fd;
}

// 0, or the errno of the attempt.
int finishConnect(int fd, const sockaddr* address, socklen_t length,
                  Deadline deadline) {
  if (fd < 0) {
    return EAFNOSUPPORT;  // as makeSocket() found
  }
  if (::connect(fd, address, length) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  if (!pollUntil(fd, POLLOUT, deadline)) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

sockaddr_storage nameOf(int fd, decltype(&::getsockname) getName) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getName(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

// Where nobody listens on a port from which the system takes those of clients,
// it may give a client the very port that this calls, and TCP connects the two
// ends of one socket (RFC 9293, 3.5: simultaneous open).
bool isConnectedToItself(int fd) {
  const sockaddr_storage own = nameOf(fd, &::getsockname);
  const sockaddr_storage peer = nameOf(fd, &::getpeername);
  return std::memcmp(&own, &peer, sizeof own) == 0;
}

// Without TIME_WAIT: the port is the server's.
void closeAtOnce(UniqueFd fd) {
  const linger none{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

// The time of this address, so that one that stays silent does not cost that of
// those behind it.
Deadline shareOf(const addrinfo* address, Deadline deadline) {
  if (deadline.never()) {
    return deadline;
  }
  int addresses = 0;
  for (; address != nullptr; address = address->ai_next) {
    addresses++;
  }
  const auto now = Deadline::Clock::now();
  return Deadline(now + (deadline.at() - now) / addresses);
}

}  // namespace

TransientError::~TransientError() = default;

std::string errnoText(int error) {
  return std::system_category().message(error);
}

UniqueFd::UniqueFd(int fd) : fd_(fd) {
  if (fd_ >= 0) {
    Descriptors& all = descriptors();
    std::lock_guard lock(all.mutex);
    all.open.insert(fd_);
    process_ = all.generation;
  }
}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    process_ = other.process_;
  }
  return *this;
}

int UniqueFd::get() const {
  return fd_ >= 0 && process_ == descriptors().generation ? fd_ : -1;
}

void UniqueFd::reset() {
  if (fd_ < 0) {
    return;
  }
  Descriptors& all = descriptors();
  std::lock_guard lock(all.mutex);
  if (process_ == all.generation) {
    all.open.erase(fd_);
    ::close(fd_);
  }
  fd_ = -1;
}

void setKeepAlive(int fd) {
  const int on = 1;
  const int idleSeconds = 2;
  const int probes = 3;
  const unsigned lostAfterMs = 8000;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idleSeconds, sizeof(int));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idleSeconds, sizeof(int));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(int));
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lostAfterMs,
               sizeof lostAfterMs);
}

int pollMilliseconds(Deadline deadline, int most) {
  return static_cast<int>(
      std::min<int64_t>(deadline.left().count(), int64_t{most}));
}

bool pollUntil(int fd, short events, Deadline deadline) {
  const int most = operationCanStop() ? 100 : 60000;
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, pollMilliseconds(deadline, most));
    if (ready > 0) {
      return true;
    }
    if (ready < 0 && errno != EINTR) {
      throw IoException(MakeString("poll: ", errnoText(errno)));
    }
    if (deadline.expired() || operationStopped()) {
      return false;
    }
  }
}

UniqueFd connectTcp(const std::string& host, int port, Deadline deadline) {
  checkPort(port, 1);
  return connectToOneOf(resolve(host, port, 0).get(), deadline);
}

UniqueFd connectToOneOf(const addrinfo* addresses, Deadline deadline) {
  int error = EAFNOSUPPORT;
  for (const addrinfo* entry = addresses; entry != nullptr;
       entry = entry->ai_next) {
    UniqueFd fd = makeSocket(entry->ai_family);
    int failure = finishConnect(fd.get(), entry->ai_addr, entry->ai_addrlen,
                                shareOf(entry, deadline));
    if (failure == 0 && isConnectedToItself(fd.get())) {
      closeAtOnce(std::move(fd));
      failure = ECONNREFUSED;
    } else if (failure == 0) {
      setKeepAlive(fd.get());
      return fd;
    }
    // That of the first one that could be tried: the resolver puts in front
    // which is the likeliest to answer.
    error = error == EAFNOSUPPORT ? failure : error;
  }
  throw TransientError(errnoText(error));
}

UniqueFd connectUnix(const std::string& path, Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw InvalidOperationException(
        MakeString("the socket path ", path, " is longer than ",
                   sizeof address.sun_path - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd = makeSocket(AF_UNIX);
  const int error =
      finishConnect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof address, deadline);
  if (error != 0) {
    throw TransientError(errnoText(error));
  }
  return fd;
}

namespace {

// Whether this address is bound alone, not all interfaces.
bool isBoundAlone(const std::string& host) {
  in6_addr parsed;
  return host == "localhost" ||
         inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

const char* listenRemedy(int error) {
  switch (error) {
    case EADDRNOTAVAIL:
      return "; rank 0 serves it, and this is no address of its host";
    case EMFILE:
    case ENFILE:
      return "; see ulimit -n";
    default:
      return "; choose another port in GLOO_STORE";
  }
}

}  // namespace

UniqueFd listenTcp(const std::string& host, int port) {
  checkPort(port, 0);
  const AddressList list =
      resolve(isBoundAlone(host) ? host : std::string(), port, AI_PASSIVE);
  // IPv6's wildcard takes IPv4 clients too, so it goes first.
  int error = EADDRNOTAVAIL;
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* entry = list.get(); entry != nullptr;
         entry = entry->ai_next) {
      if (entry->ai_family != family) {
        continue;
      }
      UniqueFd fd(
          ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (!fd) {
        error = errno;
        continue;
      }
      const int on = 1;
      const int off = 0;
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (::bind(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 &&
          ::listen(fd.get(), SOMAXCONN) == 0) {
        return fd;
      }
      error = errno;
      if (error == EADDRINUSE || error == EACCES) {
        break;
      }
    }
    if (error == EADDRINUSE || error == EACCES) {
      break;
    }
  }
  throw IoException(MakeString(
      "cannot serve the TCP store on ", host.empty() ? "any address" : host,
      " port ", port, ": ", errnoText(error), listenRemedy(error)));
}

int localPort(int fd) {
  sockaddr_storage address = nameOf(fd, &::getsockname);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

void sendAll(int fd, std::span<const char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!pollUntil(fd, POLLOUT, deadline)) {
        throw TransientError("Timed out while sending");
      }
    } else if (errno != EINTR) {
      throw TransientError(errnoText(errno));
    }
  }
}

size_t recvSome(int fd, std::span<char> bytes, Deadline deadline) {
  for (;;) {
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      return static_cast<size_t>(got);
    }
    if (got == 0) {
      throw TransientError("the server closed the connection");
    }
    if (errno == EAGAIN) {
      if (!pollUntil(fd, POLLIN, deadline)) {
        throw TransientError("Timed out: the server does not answer");
      }
    } else if (errno != EINTR) {
      throw TransientError(errnoText(errno));
    }
  }
}

bool isIdleAndOpen(int fd) {
  pollfd entry{fd, POLLIN | POLLRDHUP, 0};
  return fd >= 0 && ::poll(&entry, 1, 0) == 0;  // poll() ignores negative ones
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
