// One hello in each direction over one connection, without blocking and
// without reading a byte more than the hello: what follows is somebody else's.
// One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "transport/base/socket.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class HelloExchange {
 public:
  enum class Progress : uint8_t {
    kBlocked,  // call again when the socket is ready
    kDone,
    kFailed,  // why() says what happened
  };

  HelloExchange() = default;
  explicit HelloExchange(UniqueFd socket) : socket_(std::move(socket)) {}

  // Starts a connection; kBlocked or kFailed.
  Progress connect(const SocketAddress& to);

  void setOutgoing(const Hello& hello);
  // Finishes the connect first.
  Progress send();
  // kDone: `theirs` is there.
  Progress receive();

  bool answered() const { return theirs_.has_value(); }
  const Hello& theirs() const { return *theirs_; }  // REQUIRES answered()
  const std::string& why() const { return why_; }
  // What came in is no hello.
  bool garbled() const { return garbled_; }
  // The peer has closed the connection.
  bool hungUp() const { return hungUp_; }
  // What failed is that this process has no descriptor, memory or port.
  bool isShort() const;
  // errno of what failed; 0 when that was no system call.
  int error() const { return error_; }
  int socket() const { return socket_.get(); }
  UniqueFd takeSocket() { return std::move(socket_); }

 private:
  Progress fail(std::string why);
  Progress failErrno(int error);

  UniqueFd socket_;
  bool connecting_ = false;
  std::vector<char> out_;
  size_t sent_ = 0;
  std::vector<char> in_;
  size_t received_ = 0;
  std::optional<Hello> theirs_;
  std::string why_;
  bool garbled_ = false;
  bool hungUp_ = false;
  int error_ = 0;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
