// UnboundBuffer over the protocol of pair.h.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "gloo/config.h"
#include "gloo/transport/unbound_buffer.h"
#include "transport/base/context.h"
#include "transport/base/fork.h"
#include "transport/base/kept_memory.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class UnboundBuffer final : public transport::UnboundBuffer,
                            public OperationOwner {
 public:
  UnboundBuffer(Context& context, void* ptr, size_t size);
  ~UnboundBuffer() override;

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  bool waitRecv(std::chrono::steady_clock::time_point deadline) override;
  bool waitSend(std::chrono::steady_clock::time_point deadline) override;
  void abortWaitRecv() override;
  void abortWaitSend() override;
  void send(int dstRank, uint64_t slot, size_t offset, size_t nbytes) override;
  void recv(int srcRank, uint64_t slot, size_t offset, size_t nbytes) override;
  void recv(std::vector<int> srcRanks, uint64_t slot, size_t offset,
            size_t nbytes) override;
  std::unique_ptr<RemoteKey> getRemoteKey() const override {
    return getRemoteKey(RemoteAccess::kReadWrite);
  }
  std::unique_ptr<RemoteKey> getRemoteKey(RemoteAccess access) const override;
  void put(const RemoteKey& key, uint64_t slot, size_t offset, size_t roffset,
           size_t nbytes) override;
  void get(const RemoteKey& key, uint64_t slot, size_t offset, size_t roffset,
           size_t nbytes) override;

  // REQUIRES the domain's lock.
  void onOperation(Operation& op) override;

 private:
  // Operations of one direction: those that ended and that nobody waited for
  // yet, and how many are pending.
  struct Side {
    Fifo<Operation> ended;
    uint64_t pending = 0;
    bool aborted = false;
    int takingBack = 0;  // aborts whose operation has not ended yet

    // Not before the peer has let go of the memory: the caller may reuse it.
    bool endsWait() const { return aborted && takingBack == 0; }
  };

  // Until then, or, when `until` is null, for the timeout.
  bool wait(Side& side, int* rank, std::chrono::milliseconds timeout,
            const Deadline::Clock::time_point* until);
  void abortWait(Side& side, bool sends);
  Operation& newOperation(bool isSend, uint8_t kind, size_t offset,
                          size_t bytes);
  void startMessage(Operation& op, Pair& pair, ProgressDomain::Lock& lock);
  size_t checkedBytes(const char* what, size_t offset, size_t nbytes) const;
  void refuseBytes(const char* what, size_t offset, size_t nbytes) const;
  void request(const RemoteKey& key, bool isPut, uint64_t slot, size_t offset,
               size_t roffset, size_t nbytes);

  Context& context_;
  const std::weak_ptr<const void> alive_;  // as long as the context
  Origin origin_;
  const MemoryKind kind_;
  Side sends_;
  Side recvs_;
  // Of the one who exports. Taken before the domain's lock, which is free while
  // much memory is registered.
  mutable std::mutex exporting_;
  // By RemoteAccess - 1; 0: not exported for that.
  mutable std::array<uint32_t, 3> exported_{};
  const std::unique_ptr<KeptMemory> kept_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
