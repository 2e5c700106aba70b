// Queue pairs: creation, states, posting.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/support/fake_verbs/fabric.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using Lock = std::lock_guard<std::mutex>;

FakeFabric& fabric() { return FakeFabric::instance(); }

int whyNotCreate(const ibv_qp_init_attr& init) {
  const FakeVerbsConfig& config = fabric().config;
  if (const int error = fabric().failureOf(FakeCall::kCreateQp)) {
    return error;
  }
  if (static_cast<int>(fabric().queuePairs.size()) >= config.maxQp) {
    return ENOMEM;
  }
  const bool good = init.qp_type == IBV_QPT_RC && init.send_cq != nullptr &&
                    init.recv_cq != nullptr && init.srq == nullptr &&
                    init.cap.max_inline_data <= config.maxInlineBytes &&
                    static_cast<int>(init.cap.max_send_wr) <= config.maxQpWr &&
                    static_cast<int>(init.cap.max_recv_wr) <= config.maxQpWr;
  return good ? 0 : EINVAL;
}

ibv_qp* createQp(ibv_pd* pd, ibv_qp_init_attr* init) {
  Lock lock(fabric().mutex);
  if (const int error = whyNotCreate(*init)) {
    errno = error;
    return nullptr;
  }
  auto qp = std::make_unique<FakeQp>();
  qp->context = pd->context;
  qp->qp_context = init->qp_context;
  qp->pd = pd;
  qp->send_cq = init->send_cq;
  qp->recv_cq = init->recv_cq;
  qp->qp_num = fabric().newQpn();
  qp->state = IBV_QPS_RESET;
  qp->qp_type = init->qp_type;
  qp->init = *init;
  static_cast<FakePd*>(pd)->children++;
  static_cast<FakeCq*>(qp->send_cq)->children++;
  static_cast<FakeCq*>(qp->recv_cq)->children++;
  fabric().alive["qp"]++;
  const uint32_t number = qp->qp_num;
  return fabric().queuePairs.emplace(number, std::move(qp)).first->second.get();
}

int destroyQp(ibv_qp* handle) {
  auto* qp = static_cast<FakeQp*>(handle);
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kDestroyQp)) {
    return error;
  }
  if (qp->unacknowledged != 0) {  // the real one would wait for ever
    fabric().misuse.push_back("a QP with unacknowledged events was destroyed");
  }
  static_cast<FakePd*>(qp->pd)->children--;
  static_cast<FakeCq*>(qp->send_cq)->children--;
  static_cast<FakeCq*>(qp->recv_cq)->children--;
  fabric().alive["qp"]--;
  const uint32_t number = qp->qp_num;
  fabric().forgetEvents(*qp);
  fabric().queuePairs.erase(number);
  fabric().kickPeersOf(number);
  return 0;
}

struct Transition {
  ibv_qp_state from;
  ibv_qp_state to;
  int needed;  // attributes, ibv_modify_qp(3), for RC
};
constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
         IBV_QP_MAX_QP_RD_ATOMIC},
};

// Keeps what the fabric looks at.
void merge(FakeQp& qp, const ibv_qp_attr& attr, int mask) {
  ibv_qp_attr& mine = qp.attr;
  if (mask & IBV_QP_ACCESS_FLAGS) mine.qp_access_flags = attr.qp_access_flags;
  if (mask & IBV_QP_PORT) mine.port_num = attr.port_num;
  if (mask & IBV_QP_AV) {
    mine.ah_attr = attr.ah_attr;
    if (attr.ah_attr.is_global && attr.ah_attr.grh.hop_limit < 2) {
      fabric().misuse.push_back("a path that no router lets pass");
    }
  }
  if ((mask & IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer == 0) {
    fabric().misuse.push_back("an RNR timer of 0, which is 655 ms");
  }
  if (mask & IBV_QP_PATH_MTU) mine.path_mtu = attr.path_mtu;
  if (mask & IBV_QP_DEST_QPN) mine.dest_qp_num = attr.dest_qp_num;
  if (mask & IBV_QP_RQ_PSN) mine.rq_psn = attr.rq_psn;
  if (mask & IBV_QP_SQ_PSN) mine.sq_psn = attr.sq_psn;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) mine.max_rd_atomic = attr.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
    mine.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  }
}

bool isLegal(const FakeQp& qp, const ibv_qp_attr& attr, int mask) {
  if ((mask & IBV_QP_PORT) != 0 &&
      (attr.port_num < 1 || attr.port_num > fabric().ports.size())) {
    return false;
  }
  if ((mask & IBV_QP_PATH_MTU) != 0 &&
      attr.path_mtu > fabric().ports[qp.attr.port_num - 1u].mtu) {
    return false;
  }
  return std::any_of(std::begin(kTransitions), std::end(kTransitions),
                     [&](const Transition& t) {
                       return t.from == qp.state && t.to == attr.qp_state &&
                              (mask & t.needed) == t.needed;
                     });
}

std::optional<std::chrono::milliseconds> searchTime() {
  Lock lock(fabric().mutex);
  return fabric().noPeersAfter;
}

int modifyQp(ibv_qp* handle, ibv_qp_attr* attr, int mask) {
  auto* qp = static_cast<FakeQp*>(handle);
  const auto searched = searchTime();
  if (searched && (mask & IBV_QP_AV) != 0) {
    std::this_thread::sleep_for(*searched);
    return ETIMEDOUT;
  }
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kModifyQp)) {
    return error;
  }
  if ((mask & IBV_QP_STATE) == 0) {
    return EINVAL;
  }
  if (attr->qp_state == IBV_QPS_ERR) {
    fabric().enterError(*qp);
    fabric().kickPeersOf(qp->qp_num);
    return 0;
  }
  if (!isLegal(*qp, *attr, mask)) {
    return EINVAL;
  }
  merge(*qp, *attr, mask);
  qp->state = attr->qp_state;
  fabric().kick(*qp);
  fabric().kickPeersOf(qp->qp_num);
  return 0;
}

SendRequest copyOf(const ibv_send_wr& wr, const FakeQp& qp) {
  SendRequest request;
  request.wr = wr;
  request.wr.next = nullptr;
  request.pieces.assign(wr.sg_list, wr.sg_list + wr.num_sge);
  for (const ibv_sge& piece : request.pieces) {
    request.bytes += piece.length;
    if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
      const auto* from = reinterpret_cast<const char*>(piece.addr);
      request.inlined.insert(request.inlined.end(), from, from + piece.length);
    }
  }
  request.signalled =
      qp.init.sq_sig_all != 0 || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  return request;
}

int whyNotSend(FakeQp& qp, const ibv_send_wr& wr) {
  if (const int error = fabric().failureOf(FakeCall::kPostSend)) {
    return error;
  }
  if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_ERR) {
    return EINVAL;
  }
  if (qp.sendRoomUsed >= qp.init.cap.max_send_wr) {
    fabric().misuse.push_back("a full send queue was posted to");
    return ENOMEM;
  }
  size_t bytes = 0;
  for (int i = 0; i < wr.num_sge; i++) {
    bytes += wr.sg_list[i].length;
  }
  const bool tooLong = (wr.send_flags & IBV_SEND_INLINE) != 0 &&
                       bytes > qp.init.cap.max_inline_data;
  if (tooLong || wr.num_sge > static_cast<int>(qp.init.cap.max_send_sge)) {
    fabric().misuse.push_back("a send request exceeds the queue pair's limits");
    return EINVAL;
  }
  return 0;
}

int postSend(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) {
  auto* qp = static_cast<FakeQp*>(handle);
  Lock lock(fabric().mutex);
  fabric().counts.doorbells++;
  int error = 0;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    error = whyNotSend(*qp, *wr);
    if (error != 0) {
      *bad = wr;
      break;
    }
    qp->sends.push_back(copyOf(*wr, *qp));
    qp->sendRoomUsed++;
    fabric().counts.sendsPosted++;
    fabric().counts.signalled += qp->sends.back().signalled ? 1 : 0;
  }
  if (qp->state == IBV_QPS_ERR) {
    fabric().enterError(*qp);  // flushes
  } else {
    fabric().kick(*qp);
  }
  return error;
}

int whyNotReceive(FakeQp& qp, const ibv_recv_wr& wr) {
  if (const int error = fabric().failureOf(FakeCall::kPostRecv)) {
    return error;
  }
  if (qp.state == IBV_QPS_RESET ||
      wr.num_sge > static_cast<int>(qp.init.cap.max_recv_sge)) {
    return EINVAL;
  }
  if (qp.receives.size() >= qp.init.cap.max_recv_wr) {
    fabric().misuse.push_back("a full receive queue was posted to");
    return ENOMEM;
  }
  return 0;
}

int postRecv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  auto* qp = static_cast<FakeQp*>(handle);
  Lock lock(fabric().mutex);
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    error = whyNotReceive(*qp, *wr);
    if (error != 0) {
      *bad = wr;
      break;
    }
    RecvRequest request;
    request.id = wr->wr_id;
    request.pieces.assign(wr->sg_list, wr->sg_list + wr->num_sge);
    qp->receives.push_back(std::move(request));
  }
  if (qp->state == IBV_QPS_ERR) {
    fabric().enterError(*qp);
  }
  fabric().kickPeersOf(qp->qp_num);
  return error;
}

}  // namespace

void fillQueuePairCalls(transport::ibverbs::Api& api) {
  api.createQp = &createQp;
  api.modifyQp = &modifyQp;
  api.destroyQp = &destroyQp;
}

void fillPostOps(ibv_context_ops& ops) {
  ops.post_send = &postSend;
  ops.post_recv = &postRecv;
}

}  // namespace test
GLOO_NAMESPACE_END
