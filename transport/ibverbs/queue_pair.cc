#include "transport/ibverbs/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/common/string.h"
#include "transport/base/device.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

int readsAnswered(const Adapter& adapter) {
  return std::min(adapter.settings().readsAtATime,
                  adapter.device().max_qp_rd_atom);
}

int readsAsked(const Adapter& adapter) {
  return std::min(adapter.settings().readsAtATime,
                  adapter.device().max_qp_init_rd_atom);
}

// Not where the error is surely about something else: drivers say EINVAL or
// EOPNOTSUPP, ENOMEM of a queue that has too many bytes in all (mlx5), or
// nothing (bnxt_re).
bool lessInlineDataMayHelp(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case EPERM:
    case EACCES:
    case ENODEV:
    case EIO:
      return false;
    default:
      return true;
  }
}

}  // namespace

QueuePair::QueuePair(Adapter& adapter, CompletionQueues& queues,
                     QueueLengths wanted)
    : adapter_(adapter),
      queues_(queues),
      entries_(wanted.sends + wanted.receives),
      cq_((adapter.requireAddress(), queues.reserve(entries_))),
      psn_(static_cast<uint32_t>(base::randomNonce()) & 0xffffff),
      lid_(adapter.port().lid),
      mtu_(adapter.mtu()),
      partition_(adapter.partition()),
      gid_(adapter.chosen().gid) {
  try {
    create(wanted);
    initialise();
  } catch (...) {
    qp_.reset();
    queues_.release(cq_, entries_);
    throw;
  }
}

// Devices that have no inline data refuse it: asked for less and less.
void QueuePair::create(QueueLengths wanted) {
  ibv_qp_init_attr init{};
  init.send_cq = cq_;
  init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = static_cast<uint32_t>(wanted.sends);
  init.cap.max_recv_wr = static_cast<uint32_t>(wanted.receives);
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 1;
  const auto wantedInline =
      static_cast<uint32_t>(adapter_.settings().inlineBytes);
  uint32_t asked = 2 * wantedInline;
  int error = 0;
  do {
    asked /= 2;
    init.cap.max_inline_data = asked;
    errno = 0;
    qp_.reset(api().createQp(adapter_.pd(), &init));
    error = errno;
  } while (qp_ == nullptr && asked > 0 && lessInlineDataMayHelp(error));
  if (qp_ == nullptr) {
    GLOO_THROW_IO_EXCEPTION(
        "RDMA device ", adapter_.chosen().device, " makes no queue pair with ",
        wanted.sends, " sends and ", wanted.receives, " receives: ",
        error != 0 ? base::errnoText(error) : "the driver does not say why",
        " (lower sendQueue and receives of the device's attributes; is the "
        "limit of locked memory, ulimit -l, large enough?)");
  }
  inlineBytes_ = std::min(init.cap.max_inline_data, wantedInline);
  if (inlineBytes_ < wantedInline) {
    GLOO_DEBUG("RDMA device ", adapter_.chosen().device, " takes ",
               inlineBytes_, " bytes of inline data, not ", wantedInline);
  }
}

void QueuePair::destroy() {
  if (qp_ == nullptr) {
    return;
  }
  ibv_qp* const qp = qp_.release();
  if (qp_.get_deleter().destroy(qp)) {
    queues_.release(cq_, entries_);
    return;
  }
  // In error it answers no request either. It keeps its places in the
  // completion queue, and the kernel destroys it at the end of the process.
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  if (api().modifyQp(qp, &attr, IBV_QP_STATE) != 0) {
    queues_.distrust("it does not end a queue pair, so peers may still write");
  }
}

QpAddress QueuePair::address() const {
  QpAddress address;
  address.lid = lid_;
  address.mtu = static_cast<uint8_t>(mtu_);
  address.global = adapter_.chosen().gidIndex >= 0;
  address.qpn = qp_->qp_num;
  address.psn = psn_;
  address.readsAtATime = static_cast<uint8_t>(readsAnswered(adapter_));
  address.gidType = gid_.type;
  address.partition = partition_.key;
  std::memcpy(address.gid.data(), gid_.raw.raw, address.gid.size());
  return address;
}

void QueuePair::modify(ibv_qp_attr& attr, int mask, const char* what) {
  if (const int error = api().modifyQp(qp_.get(), &attr, mask); error != 0) {
    GLOO_THROW_IO_EXCEPTION("RDMA device ", adapter_.chosen().device,
                            " cannot make a queue pair ", what, ": ",
                            base::errnoText(error > 0 ? error : errno));
  }
}

void QueuePair::initialise() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = static_cast<uint16_t>(partition_.index);
  attr.port_num = static_cast<uint8_t>(adapter_.chosen().port);
  attr.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  modify(attr,
         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
         "that receives (are port and pkeyIndex right?)");
}

void QueuePair::connect(const QpAddress& peer) {
  if (peer.global != (adapter_.chosen().gidIndex >= 0)) {
    GLOO_THROW_IO_EXCEPTION(
        "One side of the pair is addressed by GID, the other by LID (",
        peer.str(), "): give both devices an index, or neither");
  }
  // All packets would be lost.
  if (peer.gidType != gid_.type) {
    GLOO_THROW_IO_EXCEPTION(
        "One side of the pair has a GID of ", name(gid_.type),
        ", the other one of ", name(peer.gidType), " (", peer.str(),
        "): all hosts need the same kind (gloo_info lists them; the index of "
        "the device's attributes chooses)");
  }
  requireOneFabric(peer);
  if (const Gid* const now = adapter_.find(gid_)) {
    gid_.index = now->index;  // it may have moved since the peer was told
  }
  readyToReceive(peer);
  readyToSend(peer);
}

// InfiniBand loses the packets between others, which its ports do not tell.
// What is 0 is not known. (Fabrics that never met may both have the same
// subnet.)
void QueuePair::requireOneFabric(const QpAddress& peer) const {
  Gid theirs;
  std::memcpy(theirs.raw.raw, peer.gid.data(), peer.gid.size());
  const auto subnetOf = [](const Gid& gid) {
    return gid.raw.global.subnet_prefix;
  };
  if (gid_.type == GidType::kInfiniBand && subnetOf(gid_) != 0 &&
      subnetOf(theirs) != 0 && subnetOf(gid_) != subnetOf(theirs)) {
    GLOO_THROW_IO_EXCEPTION(
        "The two sides of the pair are on different InfiniBand subnets (GIDs ",
        gid_.str(), ", here, of RDMA device ", adapter_.chosen().device,
        ", and ", theirs.str(),
        "): name a device that is on the peers' fabric");
  }
  const uint16_t own = partition_.key;
  if (own == 0 || peer.partition == 0) {
    return;
  }
  const std::string keys =
      MakeString("0x", std::hex, own, ", here, and 0x", peer.partition);
  if (((own ^ peer.partition) & ~QpAddress::kFullMember) != 0) {
    GLOO_THROW_IO_EXCEPTION(
        "The two sides of the pair are in different InfiniBand partitions (",
        keys, "): the pkeyIndex of the device's attributes chooses (ls ",
        "/sys/class/infiniband/*/ports/*/pkeys)");
  }
  if (((own | peer.partition) & QpAddress::kFullMember) == 0) {
    GLOO_THROW_IO_EXCEPTION(
        "Both sides of the pair are limited members of their InfiniBand "
        "partition (",
        keys, "), who do not hear each other: make one of them a full member");
  }
}

void QueuePair::requireAddress() {
  adapter_.refreshLid();
  for (const std::string& why :
       {adapter_.whyNotAt(lid_), adapter_.whyNotAt(gid_)}) {
    if (!why.empty()) {
      GLOO_THROW_IO_EXCEPTION(why);
    }
  }
}

std::string QueuePair::hint() const {
  if (partition_ != adapter_.partition()) {
    return "; the port's table of partitions has changed since the queue pair "
           "was made";
  }
  const Gid* const now = adapter_.find(gid_);
  if (now == nullptr || now->index == gid_.index) {
    return std::string();
  }
  return MakeString("; its GID ", now->str(), ", had index ", gid_.index,
                    " when the queue pair was connected");
}

int QueuePair::reads(const QpAddress& peer) const {
  return std::min<int>(readsAsked(adapter_), peer.readsAtATime);
}

ibv_ah_attr QueuePair::pathTo(const QpAddress& peer) const {
  const attr& settings = adapter_.settings();
  ibv_ah_attr path{};
  path.dlid = peer.lid;
  path.sl = static_cast<uint8_t>(settings.serviceLevel);
  path.port_num = static_cast<uint8_t>(adapter_.chosen().port);
  if (peer.global) {
    path.is_global = 1;
    std::memcpy(path.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    path.grh.sgid_index = static_cast<uint8_t>(gid_.index);
    path.grh.hop_limit = static_cast<uint8_t>(settings.hopLimit);
    path.grh.traffic_class = static_cast<uint8_t>(settings.trafficClass);
  }
  return path;
}

void QueuePair::readyToReceive(const QpAddress& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = std::min(mtu_, static_cast<ibv_mtu>(peer.mtu));
  attr.dest_qp_num = peer.qpn;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = static_cast<uint8_t>(readsAnswered(adapter_));
  attr.min_rnr_timer = static_cast<uint8_t>(adapter_.settings().rnrTimer);
  attr.ah_attr = pathTo(peer);
  modify(attr,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "that reaches the peer (is there a route to its GID?)");
}

void QueuePair::readyToSend(const QpAddress& peer) {
  const struct attr& settings = adapter_.settings();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = static_cast<uint8_t>(settings.timeout);
  attr.retry_cnt = static_cast<uint8_t>(settings.retryCount);
  attr.rnr_retry = static_cast<uint8_t>(settings.rnrRetryCount);
  attr.sq_psn = psn_;
  attr.max_rd_atomic = static_cast<uint8_t>(reads(peer));
  modify(attr,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
         "that sends");
}

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
