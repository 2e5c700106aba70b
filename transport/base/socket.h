// Small owners and helpers around file descriptors and socket addresses.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

// Sole owner of a file descriptor. Every one is close-on-exec, and is closed in
// a forked child (fork.h): a child must not keep a dead parent's peers waiting.
// An owner that came through a fork owns nothing: its number may be another's.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd);
  UniqueFd(UniqueFd&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();
  int release();  // the caller owns it now; not closed in a child any more

 private:
  int fd_ = -1;
  uint32_t generation_ = 0;
};

// Nothing is wrong with the socket: it had no room or no bytes just then.
inline bool mayTryAgain(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// An IPv4 or IPv6 address with port. Value.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t length);

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage_);
  }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  uint16_t port() const;
  void setPort(uint16_t port);
  bool isLoopback() const;
  bool hasIpOf(const SocketAddress& other) const;
  std::string str() const;  // "10.0.0.1:4711", "[fe80::1%eth0]:4711"

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// All sockets made here are stream sockets, non-blocking and close-on-exec.
// Connections of two ends on this host have a congestion control that sends
// whenever there is room; others have the system's.

// Throws IoException that names the address, errno and the remedy.
UniqueFd listenOn(const SocketAddress& local, int backlog);

// Starts a connection: 0 or EINPROGRESS (writable when it is decided), else
// errno.
int startConnect(const SocketAddress& to, UniqueFd* socket);

// The next caller; none: errno (EAGAIN: nobody is waiting).
int acceptFrom(int listener, UniqueFd* socket);

// Takes the error that a connect left behind: 0 when connected.
int takeSocketError(int socket);

SocketAddress localAddress(int socket);
SocketAddress peerAddress(int socket);

void setNoDelay(int socket);

// An idle connection notices within `limit` that the peer's host is gone.
void setKeepalive(int socket, std::chrono::seconds limit);

// Bytes that the peer's host does not accept for `limit` end the connection
// with ETIMEDOUT: also when the host is well and its process merely stopped, so
// not for connections on which a stopped peer may be owed more than a socket
// buffer.
void setUserTimeout(int socket, std::chrono::milliseconds limit);

// "Connection reset by peer (errno 104)".
std::string errnoText(int error);

// What to do about EMFILE, ENFILE and the like; empty if there is no advice.
std::string errnoRemedy(int error);
// The same, of epoll_ctl().
std::string watchRemedy(int error);

}  // namespace transport::base
GLOO_NAMESPACE_END
