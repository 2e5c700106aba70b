// One reliable connected queue pair: made, then connected to the peer's by
// INIT, RTR, RTS (InfiniBand specification, chapter 10.3.1).
#pragma once

#include <cstdint>
#include <string>

#include "gloo/config.h"
#include "transport/ibverbs/adapter.h"
#include "transport/ibverbs/completion_queues.h"
#include "transport/ibverbs/handles.h"
#include "transport/ibverbs/qp_address.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

struct QueueLengths {
  int sends = 0;
  int receives = 0;
};

// Under the domain's lock.
class QueuePair {
 public:
  // In INIT: receives can be posted. Throws IoException.
  QueuePair(Adapter& adapter, CompletionQueues& queues, QueueLengths wanted);
  ~QueuePair() { destroy(); }

  ibv_qp* get() const { return qp_.get(); }
  explicit operator bool() const { return qp_ != nullptr; }
  const ibv_cq* cq() const { return cq_; }
  uint32_t inlineBytes() const { return inlineBytes_; }
  // At which the peer sends to it.
  uint16_t lid() const { return lid_; }
  const Gid& gid() const { return gid_; }
  // Throws IoException when the port is not there any more.
  void requireAddress();
  // Of a connected one, for people: its GID has moved since. Adapters that keep
  // the address itself do not mind; others send from a place that is empty.
  std::string hint() const;

  // Ours; its limits are the caller's to fill in.
  QpAddress address() const;
  // Ready to send and receive. Throws IoException.
  void connect(const QpAddress& peer);
  // RDMA reads that may be asked of it at a time; 0: a device has none.
  int reads(const QpAddress& peer) const;
  // Afterwards the device touches no memory of this queue pair's requests, and
  // the peer none of ours.
  void destroy();

 private:
  void create(QueueLengths wanted);
  void modify(ibv_qp_attr& attr, int mask, const char* what);
  void initialise();
  void requireOneFabric(const QpAddress& peer) const;
  void readyToReceive(const QpAddress& peer);
  void readyToSend(const QpAddress& peer);
  ibv_ah_attr pathTo(const QpAddress& peer) const;

  Adapter& adapter_;
  CompletionQueues& queues_;
  const int entries_;
  ibv_cq* const cq_;
  QpHandle qp_;
  uint32_t inlineBytes_ = 0;
  const uint32_t psn_;
  // As the peer is told: the port's may be others when it has answered.
  const uint16_t lid_;
  const ibv_mtu mtu_;
  const Adapter::Partition partition_;
  Gid gid_;  // its index is that of the path, once that is made
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
