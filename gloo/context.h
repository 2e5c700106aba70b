// A group of ranks that communicate with each other: what collectives are
// called on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "gloo/common/error.h"
#include "gloo/config.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/unbound_buffer.h"

GLOO_NAMESPACE_BEGIN

namespace internal {
class CollectiveState;  // plans, scratch and profile; gloo/internal/
}  // namespace internal

// Made connected by rendezvous::Context or ContextFactory. Holds a reference
// to its device. Collectives may run on it from several threads at once when
// their tags differ; everything else is thread-safe too. After an IoException
// the context is closed: every later operation throws the same cause.
class GLOO_API Context {
 public:
  // `base` is the radix of the bcube algorithm; see below.
  Context(int rank, int size, int base = 2);
  virtual ~Context();

  const int rank;
  const int size;
  // Less than 2 counts as 2: who does not use bcube may give anything. A call
  // takes the one of when it begins, an object the one of when it was made. The
  // same on all ranks then; to be changed while nothing begins or is made.
  int base;

  std::shared_ptr<transport::Device>& getDevice();

  // Null for the own rank; throws InvalidOperationException when not connected.
  std::unique_ptr<transport::Pair>& getPair(int i);

  // Does not own the memory. To be destroyed before the context: afterwards it
  // can be destroyed, and nothing else.
  std::unique_ptr<transport::UnboundBuffer> createUnboundBuffer(void* ptr,
                                                                size_t size);

  // The first of `numToSkip` slots that nobody else was given; the same on all
  // ranks that call it in the same order.
  int nextSlot(int numToSkip = 1);

  // Leave in order: flush what was sent, tell all peers. Idempotent.
  void closeConnections();

  // The time limit of operations that say nothing else; 0: none. Default 30 s.
  void setTimeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds getTimeout() const;

  std::unique_ptr<transport::RemoteKey> deserializeRemoteKey(
      const std::string& serialized);

  // For the library's own algorithms; no promise.
  internal::CollectiveState& collectiveState();

 protected:
  // Connected from now on, instead of as before. Not while operations run.
  void attach(std::shared_ptr<transport::Device> device,
              std::shared_ptr<transport::Context> transportContext);

  std::shared_ptr<transport::Device> device_;
  std::shared_ptr<transport::Context> transportContext_;
  // Plain values for derived classes, as theirs always were. The library itself
  // reads and changes them from several threads at once, each time atomically.
  int slot_;
  std::chrono::milliseconds timeout_;

 private:
  struct Collectives;  // of the connections; made with them
  std::unique_ptr<Collectives> collectives_;
  internal::CollectiveState& makeCollectiveState();
  std::atomic<internal::CollectiveState*> madeState_{nullptr};
};

GLOO_NAMESPACE_END
