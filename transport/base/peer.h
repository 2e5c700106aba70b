// How far a context is with the connection to one peer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "gloo/common/deadline.h"
#include "gloo/internal/mesh.h"
#include "transport/base/link.h"
#include "transport/base/socket.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

struct Peer {
  using State = internal::Mesh::PeerState;
  // Between calls of a peer; doubled each time.
  static constexpr std::chrono::milliseconds kFirstBackoff{5};
  static constexpr std::chrono::milliseconds kMaxBackoff{200};

  bool known = false;
  AddressRecord record;
  SocketAddress endpoint;
  std::unique_ptr<PendingLink> pending;    // of our call
  std::unique_ptr<PendingLink> answering;  // of the peer's call
  bool calling = false;
  bool probing = false;
  bool putOff = false;  // of a lazy pair: it is called again in a while
  bool byHand = false;  // Pair::connect waits for it
  State state = State::kUnknown;
  std::string trouble;
  uint64_t nonce = 0;  // of the process that is connected
  Deadline::Clock::time_point retryAt;
  std::chrono::milliseconds backoff = kFirstBackoff;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
