// The TCP connection over which the two ends of a queue pair were introduced.
// It stays: a queue pair says nothing when its peer's process ends, and has no
// last word once it has failed.
//
// What travels: one byte when the queue pair can receive; and at the end, if
// the queue pair was given up, one frame that says why.
//
// Under the domain's lock.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include "gloo/config.h"
#include "transport/base/socket.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

class SideChannel {
 public:
  // A host that does not answer for so long is gone.
  SideChannel(base::UniqueFd socket, std::chrono::milliseconds hostTimeout);

  int fd() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }
  const std::string& peerName() const { return name_; }

  void sayReady();
  // Nothing can be said afterwards.
  void sayLast(const base::FrameHeader& header, const char* payload);

  enum class News {
    kNothing,
    kReady,   // the peer can receive
    kLast,    // last() has its last word
    kEnded,   // the peer's process has closed it, or has ended
    kBroken,  // error() says how
  };
  // What is new, one thing at a time.
  News read();
  const base::FrameHeader& last() const { return last_; }
  const char* lastPayload() const {
    return bytes_.data() + base::FrameHeader::kBytes;
  }
  const std::string& error() const { return error_; }

  void close() { socket_.reset(); }

 private:
  News fail(const std::string& why);
  News parse();
  void write(const char* bytes, size_t count);

  base::UniqueFd socket_;
  const std::string name_;
  bool ready_ = false;  // the peer has said so
  std::array<char, base::FrameHeader::kBytes + base::kMaxControlPayload> bytes_;
  size_t have_ = 0;
  base::FrameHeader last_;
  std::string error_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
