// Between rendezvous, which exchanges addresses through a store, and the
// transports, which connect to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/common/store.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
class Context;
}

namespace internal {

struct Profile;

// A rank's published address, decoded. `bytes` is what travels: at most
// transport::Address::kMaxByteSize, versioned, little-endian, with a checksum.
struct PeerAddress {
  int rank = -1;
  int size = 0;
  uint64_t nonce = 0;         // random; new for each transport context
  uint64_t hostId = 0;        // equal for processes that share a kernel
  uint32_t pidNamespace = 0;  // in which `pid` counts; 0: not known
  int pid = 0;
  std::string text;  // "tcp 10.0.0.1:41234 (host node7, pid 1234)"
  std::vector<char> bytes;
};

// A rank's transport context while it is being connected. All calls from one
// thread. Implemented by transport/base.
class GLOO_API Mesh {
 public:
  virtual ~Mesh();

  // Throws InvalidOperationException if the context's transport has no mesh.
  static Mesh& of(transport::Context& context);

  // This rank's address. The context listens from now on.
  virtual PeerAddress address() = 0;

  // Throws RendezvousException naming what is wrong with the bytes (magic,
  // version, checksum, length).
  virtual PeerAddress decode(const std::vector<char>& bytes) const = 0;

  // Start to connect to a peer, or replace the address of one that is not yet
  // connected (its first address was stale). Does not block.
  virtual void addPeer(const PeerAddress& peer) = 0;

  enum class PeerState : uint8_t {
    kUnknown,     // no address yet
    kConnecting,  // trying, or waiting for the peer to call
    kRefused,     // nobody there, or not the process that published it: the
                  // address may be left over from an earlier run. Is retried.
    kConnected,
  };
  virtual PeerState peerState(int rank) const = 0;
  // The nonce of the process that this rank is connected to, whichever side
  // called; 0 while it is not. Its record in the store may be an older one.
  virtual uint64_t peerNonce(int rank) const = 0;
  // Why the state is kRefused; empty otherwise.
  virtual std::string peerTrouble(int rank) const = 0;

  // Drives connecting for at most `limit`, returning early when anything has
  // changed. Throws the cause when a peer reported one (for example that
  // another process has the same rank).
  virtual void progress(std::chrono::milliseconds limit) = 0;
  virtual bool allConnected() const = 0;

  // Ask the process at this address whether it is alive and has this nonce.
  // Used to tell a duplicate rank from what an earlier run left behind.
  // Blocks at most `limit`.
  virtual bool isAlive(const PeerAddress& peer,
                       std::chrono::milliseconds limit) = 0;

  // Whether the process at this address has certainly ended: on this host, a
  // look that costs no message.
  virtual bool isGone(const PeerAddress& peer) const {
    (void)peer;
    return false;
  }

  // Tells every peer known so far, and all that call later, that this mesh
  // cannot be: they throw this text. Then the context is closed.
  virtual void refuse(const std::string& why) = 0;

  // The mesh is complete: the world nonce is rank 0's nonce, `profile` its
  // profile.
  virtual void complete(uint64_t worldNonce,
                        std::shared_ptr<const Profile> profile) = 0;

  // After complete(), on all ranks: agrees on what all of them share (see
  // gloo/internal/direct.h). Blocks until `deadline`; throws the cause, also
  // when a rank does not answer.
  virtual void share(Deadline deadline) { (void)deadline; }
};

// Connects all pairs of `context` through `store`: publishes one address,
// gathers the others', agrees on the profile. Implemented by rendezvous/.
// Blocks until `deadline`; throws RendezvousException.
GLOO_API void connectMesh(transport::Context& context, IStore& store,
                          Deadline deadline);

}  // namespace internal
GLOO_NAMESPACE_END
