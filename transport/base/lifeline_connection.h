// One open lifeline: a connection on which almost never anything is said.
// One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/cause.h"
#include "transport/base/socket.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class LifelineConnection {
 public:
  // What came in since the last look.
  struct News {
    bool confirmed = false;  // the peer has spoken: it regards this as open
    bool bye = false;        // the peer has left in order
    std::optional<internal::Cause> cause;
    bool ended = false;   // nothing more will come
    bool broken = false;  // ended, by what is not our protocol
    std::string why;      // of ended
  };

  // Sets what notices the loss of the peer's host.
  explicit LifelineConnection(UniqueFd socket);

  int socket() const { return socket_.get(); }

  // The first word, without meaning: both sides say it once the connection is
  // a lifeline to them.
  void confirm() { say(FrameType::kCredit, {}); }
  void sayCause(const internal::Cause& cause);
  // Nothing is said after it.
  void sayBye();

  // What could not leave at once; false: call again when writable.
  bool flush();

  News receive();

 private:
  void say(FrameType type, const std::vector<char>& payload);
  void take(News& news);

  UniqueFd socket_;
  std::vector<char> out_;
  bool closing_ = false;
  std::array<char, FrameHeader::kBytes + kMaxControlPayload> in_;
  size_t have_ = 0;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
