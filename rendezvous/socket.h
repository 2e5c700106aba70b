// File descriptors and blocking-with-a-deadline socket calls for the clients
// and the server of the stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gloo/common/deadline.h"
#include "gloo/common/error.h"
#include "gloo/config.h"

struct addrinfo;

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// The connection is lost or cannot be made; trying again may help.
struct TransientError : public IoException {
  using IoException::IoException;
  ~TransientError() override;
};

// Sole owner of a file descriptor. All are closed in a forked child, so that
// it does not keep a dead parent's port or connections alive; get() is -1
// there, as the number may be that of another file of the child by then.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd);
  UniqueFd(UniqueFd&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), process_(other.process_) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }

  int get() const;
  explicit operator bool() const { return get() >= 0; }
  void reset();

 private:
  int fd_ = -1;
  int process_ = 0;
};

// Connected, non-blocking, close-on-exec. Throws TransientError, and
// InvalidOperationException for what is no port. How long it takes to find the
// addresses of a name is up to the system's resolver; one after the other is
// tried, each for its share of the time left.
UniqueFd connectTcp(const std::string& host, int port, Deadline deadline);
UniqueFd connectToOneOf(const addrinfo* addresses, Deadline deadline);
UniqueFd connectUnix(const std::string& path, Deadline deadline);

// Non-blocking listener; see TcpStoreServer for `host`. Throws IoException, and
// InvalidOperationException for what is no port.
UniqueFd listenTcp(const std::string& host, int port);
int localPort(int fd);

// Finds out when a connection's other end is gone: its host no longer answers,
// or takes no data for 8 s.
void setKeepAlive(int fd);

// Sends all bytes. Throws TransientError when the connection is lost or the
// deadline passes. Never raises SIGPIPE.
void sendAll(int fd, std::span<const char> bytes, Deadline deadline);

// Receives at least one byte; returns the count.
size_t recvSome(int fd, std::span<char> bytes, Deadline deadline);

// Whether an idle connection is still usable: open, and nothing unread.
bool isIdleAndOpen(int fd);

// poll() for `events` until the deadline; false: it has passed, or the
// operation was stopped (see OperationDeadline).
bool pollUntil(int fd, short events, Deadline deadline);

// What poll() and epoll_wait() take: rounded up, at most `most`.
int pollMilliseconds(Deadline deadline, int most);

std::string errnoText(int error);

}  // namespace rendezvous
GLOO_NAMESPACE_END
