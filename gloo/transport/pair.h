// This rank's end of the connection to one other rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gloo/common/logging.h"
#include "gloo/config.h"
#include "gloo/transport/address.h"
#include "gloo/transport/buffer.h"
#include "gloo/transport/unbound_buffer.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

// Owned by its Context. Thread-safe.
class GLOO_API Pair {
 public:
  virtual ~Pair() = 0;

  // What the peer passes to its connect(). Valid as long as the pair.
  virtual const Address& address() const = 0;

  // Connect to the pair whose address has these bytes; for callers that carry
  // addresses by hand instead of using connectFullMesh. Both sides call it.
  // Blocks until connected, or throws IoException at the context's timeout.
  virtual void connect(const std::vector<char>& bytes) = 0;

  // Tell the peer that this side leaves, and release the connection. What was
  // sent before is still delivered. Idempotent.
  virtual void close() = 0;

  // busyPoll: waits on this pair's device, for other pairs too, spin instead of
  // sleeping. enable: accepted, without effect: who waits always works itself.
  virtual void setSync(bool enable, bool busyPoll) = 0;

  virtual std::unique_ptr<Buffer> createSendBuffer(int slot, void* ptr,
                                                   size_t size) = 0;
  virtual std::unique_ptr<Buffer> createRecvBuffer(int slot, void* ptr,
                                                   size_t size) = 0;

  // Tagged messages; see UnboundBuffer, whose waits complete them. nbytes as it
  // is: 0 is an empty message, UnboundBuffer::kUnspecifiedByteCount all from
  // `offset` on.
  virtual void send(UnboundBuffer* buffer, uint64_t tag, size_t offset = 0,
                    size_t nbytes = 0) = 0;
  virtual void recv(UnboundBuffer* buffer, uint64_t tag, size_t offset = 0,
                    size_t nbytes = 0) = 0;

  virtual void put(UnboundBuffer* buffer, const RemoteKey& key, uint64_t slot,
                   size_t offset, size_t roffset, size_t nbytes) = 0;
  virtual void get(UnboundBuffer* buffer, const RemoteKey& key, uint64_t slot,
                   size_t offset, size_t roffset, size_t nbytes) = 0;

  virtual bool isConnected() = 0;

  // The rank among the processes of one host, as the caller numbers them.
  virtual void setLocalRank(int localRank) = 0;
  virtual int getLocalRank() const = 0;
};

}  // namespace transport
GLOO_NAMESPACE_END
