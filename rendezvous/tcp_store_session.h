// One client's connection, as far as the TCP store's server is concerned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "rendezvous/socket.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous::tcpstore {

// For one thread.
struct Session {
  UniqueFd fd;
  std::vector<char> in;   // not yet a whole frame
  std::vector<char> out;  // the answer
  size_t sent = 0;        // bytes of it that the kernel has taken
  bool writing = false;   // epoll reports room
  bool closing = false;   // dropped when what the kernel takes now is sent

  bool waiting = false;  // for the first of `keys`
  uint32_t id = 0;
  std::vector<std::string> keys;
  Deadline deadline;

  size_t counted = 0;  // of heldBytes(), in the server's sum

  // Memory that this client makes the server hold, besides what it has stored.
  size_t heldBytes() const;

  // Sends what the kernel takes now; what it does not take is left in `out`.
  // false: the connection is of no use any more.
  bool send();
};

}  // namespace rendezvous::tcpstore
GLOO_NAMESPACE_END
