// Bound buffers over the protocol of pair.h.
#pragma once

#include <cstdint>

#include "gloo/config.h"
#include "gloo/transport/buffer.h"
#include "transport/base/context.h"
#include "transport/base/fork.h"
#include "transport/base/kept_memory.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Buffer final : public transport::Buffer, public OperationOwner {
 public:
  enum class Side { kSend, kRecv };

  Buffer(Context& context, Pair& pair, Side side, int slot, void* ptr,
         size_t size);
  ~Buffer() override;

  using transport::Buffer::send;
  void send(size_t offset, size_t length, size_t roffset) override;
  void waitRecv() override;
  void waitSend() override;

  // REQUIRE the domain's lock.
  void onArrival() { arrived_++; }
  void onOperation(Operation& op) override;

 private:
  void checkSend(size_t offset, size_t length) const;
  void start(char* from, size_t length, size_t roffset);
  void wait(uint64_t& done, const char* what);
  void account(Operation& op);

  Context& context_;
  const std::weak_ptr<const void> alive_;  // as long as the context
  Pair& pair_;
  const Side side_;
  Origin origin_;
  const MemoryKind kind_;
  // Of a send buffer; a receive buffer's is registered for the peer.
  const std::unique_ptr<KeptMemory> kept_;
  const RemoteBound* remote_ = nullptr;  // of a send buffer
  uint32_t index_ = 0;                   // of a receive buffer
  uint64_t arrived_ = 0;  // writes of the peer's that nobody waited for yet
  uint64_t sent_ = 0;     // sends likewise
  uint64_t pending_ = 0;  // sends that are not complete
  // Sends count in their order, by which the caller knows their memory: one
  // that was copied may end before one ahead of it.
  uint64_t started_ = 0;    // that were not complete at once
  uint64_t accounted_ = 0;  // of them
  Fifo<Operation> early_;
  bool unsent_ = false;  // one of them has failed, or was taken back
};

}  // namespace transport::base
GLOO_NAMESPACE_END
