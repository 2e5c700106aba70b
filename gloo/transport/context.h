// The transport's side of a group of ranks: a pair for each other rank.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "gloo/common/store.h"
#include "gloo/config.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/remote_key.h"
#include "gloo/transport/unbound_buffer.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

// Holds a reference to its Device. Thread-safe once connected.
class GLOO_API Context {
 public:
  Context(int rank, int size);
  virtual ~Context() = 0;

  const int rank;
  const int size;

  // The pair for a rank; null before it was created. getPair(own rank) is
  // callable, and null.
  virtual std::unique_ptr<Pair>& getPair(int rank) = 0;
  virtual std::unique_ptr<Pair>& createPair(int rank) = 0;

  // Create all pairs and connect them through the store. Blocks; throws
  // RendezvousException or another IoException by the context's timeout.
  virtual void createAndConnectAllPairs(std::shared_ptr<IStore> store) = 0;

  virtual std::unique_ptr<UnboundBuffer> createUnboundBuffer(void* ptr,
                                                             size_t size) = 0;

  // Closes all pairs, as Pair::close() does one, together.
  virtual void closePairs();

  // How long an operation may take that says nothing else; kNoTimeout: no
  // limit. Default 30 s.
  virtual void setTimeout(std::chrono::milliseconds timeout);
  virtual std::chrono::milliseconds getTimeout() const;

  // EnforceNotMet when the text is not a RemoteKey's.
  virtual std::unique_ptr<RemoteKey> deserializeRemoteKey(
      const std::string& serialized) = 0;

 protected:
  // A plain value for derived classes. Threads that wait read it, while another
  // one may set it: the library does both atomically.
  std::chrono::milliseconds timeout_;
};

}  // namespace transport
GLOO_NAMESPACE_END
