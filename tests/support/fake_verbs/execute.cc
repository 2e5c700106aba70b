// What a device does with posted requests.
#include <algorithm>
#include <cstring>

#include "tests/support/cuda_device.h"
#include "tests/support/fake_verbs/events.h"
#include "tests/support/fake_verbs/fabric.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

bool carriesImmediate(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

ibv_wc_opcode completionOf(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    default:
      return IBV_WC_SEND;
  }
}

size_t bytesOf(const std::vector<ibv_sge>& pieces) {
  size_t bytes = 0;
  for (const ibv_sge& piece : pieces) {
    bytes += piece.length;
  }
  return bytes;
}

// Of the host, or of a CUDA device.
void move(uint64_t to, uint64_t from, size_t bytes) {
  if (CudaDevice* const cuda = CudaDevice::current()) {
    cuda->move(to, from, bytes);
  } else {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from),
                bytes);
  }
}

// Into one place from the pieces of a send, or the other way round.
void gather(const SendRequest& request, uint64_t to) {
  if (!request.inlined.empty()) {
    move(to, reinterpret_cast<uint64_t>(request.inlined.data()),
         request.inlined.size());
    return;
  }
  for (const ibv_sge& piece : request.pieces) {
    if (piece.length == 0) {
      continue;  // its address may be null
    }
    move(to, piece.addr, piece.length);
    to += piece.length;
  }
}

void scatter(uint64_t from, size_t bytes, const std::vector<ibv_sge>& pieces) {
  for (const ibv_sge& piece : pieces) {
    const size_t part = std::min<size_t>(bytes, piece.length);
    if (part == 0) {
      continue;
    }
    move(piece.addr, from, part);
    from += part;
    bytes -= part;
  }
}

}  // namespace

FakeMr* FakeFabric::region(uint32_t key, const ibv_pd* pd, uint64_t address,
                           uint64_t bytes, unsigned rights) {
  const auto found = regions.find(key);
  if (found == regions.end()) {
    return nullptr;
  }
  FakeMr& mr = *found->second;
  const auto start = reinterpret_cast<uint64_t>(mr.addr);
  const bool inside = address >= start && bytes <= mr.length &&
                      address - start <= mr.length - bytes;
  return mr.pd == pd && inside && (mr.access & rights) == rights ? &mr
                                                                 : nullptr;
}

bool FakeFabric::localPiecesAreGood(FakeQp& qp,
                                    const std::vector<ibv_sge>& pieces,
                                    unsigned rights) {
  return std::all_of(pieces.begin(), pieces.end(), [&](const ibv_sge& piece) {
    return piece.length == 0 ||
           ((piece.lkey & kLocalKey) != 0 &&
            region(piece.lkey & ~kLocalKey, qp.pd, piece.addr, piece.length,
                   rights) != nullptr);
  });
}

void FakeFabric::completeSend(FakeQp& qp, ibv_wc_status status,
                              uint32_t vendor) {
  const SendRequest request = std::move(qp.sends.front());
  qp.sends.pop_front();
  qp.unreported++;
  if (status == IBV_WC_SUCCESS && !request.signalled) {
    return;
  }
  Completion completion;
  completion.wc.wr_id = request.wr.wr_id;
  completion.wc.status = status;
  completion.wc.vendor_err = vendor;
  completion.wc.opcode = completionOf(request.wr.opcode);
  completion.wc.qp_num = qp.qp_num;
  completion.sendsFreed = std::exchange(qp.unreported, 0);
  complete(static_cast<FakeCq*>(qp.send_cq), completion);
}

void FakeFabric::completeReceive(FakeQp& qp, const Completion& what) {
  Completion completion = what;
  completion.wc.wr_id = qp.receives.front().id;
  completion.wc.qp_num = qp.qp_num;
  qp.receives.pop_front();
  complete(static_cast<FakeCq*>(qp.recv_cq), completion);
}

void FakeFabric::enterError(FakeQp& qp) {
  qp.state = IBV_QPS_ERR;
  while (!qp.sends.empty()) {
    completeSend(qp, IBV_WC_WR_FLUSH_ERR);
  }
  Completion flushed;
  flushed.wc.status = IBV_WC_WR_FLUSH_ERR;
  while (!qp.receives.empty()) {
    completeReceive(qp, flushed);
  }
}

// The responder refuses: it is in error, and the requester learns why.
void FakeFabric::failBoth(FakeQp& qp, FakeQp& peer, ibv_wc_status status) {
  completeSend(qp, status);
  enterError(qp);
  enterError(peer);
}

void FakeFabric::alter(std::vector<char>& bytes) {
  if (alterOneIn == 0 || bytes.empty() || alterRandom() % alterOneIn != 0) {
    return;
  }
  altered = true;
  if (alterRandom() % 4 == 0) {
    bytes.resize(alterRandom() % bytes.size());
    return;
  }
  // Most of what matters is in the head of a frame.
  const size_t reach = std::min<size_t>(bytes.size(), 96);
  for (uint64_t i = 0; i < 1 + alterRandom() % 3; i++) {
    bytes[alterRandom() % reach] = static_cast<char>(alterRandom());
  }
}

bool FakeFabric::receive(FakeQp& qp, FakeQp& peer, SendRequest& request,
                         bool withData) {
  if (peer.receives.empty()) {
    // Who has been told too many credits is not to blame.
    counts.receiverNotReady += request.notReady || altered ? 0 : 1;
    request.notReady = true;
    return false;  // tried again when one is posted
  }
  Completion completion;
  completion.wc.opcode = withData ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  completion.wc.byte_len = static_cast<uint32_t>(request.bytes);
  completion.solicited = (request.wr.send_flags & IBV_SEND_SOLICITED) != 0;
  if (carriesImmediate(request.wr.opcode)) {
    completion.wc.wc_flags = IBV_WC_WITH_IMM;
    completion.wc.imm_data = request.wr.imm_data;
  }
  const std::vector<ibv_sge>& places = peer.receives.front().pieces;
  if (withData) {
    if (bytesOf(places) < request.bytes ||
        !localPiecesAreGood(peer, places, IBV_ACCESS_LOCAL_WRITE)) {
      completion.wc.status = bytesOf(places) < request.bytes
                                 ? IBV_WC_LOC_LEN_ERR
                                 : IBV_WC_LOC_PROT_ERR;
      completeReceive(peer, completion);
      failBoth(qp, peer, IBV_WC_REM_INV_REQ_ERR);
      return true;
    }
    std::vector<char> bytes(request.bytes);
    gather(request, reinterpret_cast<uint64_t>(bytes.data()));
    alter(bytes);
    completion.wc.byte_len = static_cast<uint32_t>(bytes.size());
    scatter(reinterpret_cast<uint64_t>(bytes.data()), bytes.size(), places);
  }
  completeReceive(peer, completion);
  completeSend(qp, IBV_WC_SUCCESS);
  return true;
}

// RDMA write or read; false: refused.
bool FakeFabric::access(FakeQp& qp, FakeQp& peer, SendRequest& request) {
  const bool reads = request.wr.opcode == IBV_WR_RDMA_READ;
  const unsigned right =
      reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  const auto& remote = request.wr.wr.rdma;
  const bool allowed =
      (peer.attr.qp_access_flags & right) != 0 &&
      (!reads ||
       (qp.attr.max_rd_atomic > 0 && peer.attr.max_dest_rd_atomic > 0)) &&
      (request.bytes == 0 ||
       region(remote.rkey, peer.pd, remote.remote_addr, request.bytes, right));
  if (!allowed) {
    failBoth(qp, peer, IBV_WC_REM_ACCESS_ERR);
    raiseOnQp(IBV_EVENT_QP_ACCESS_ERR, peer);
    return false;
  }
  if (reads) {
    scatter(remote.remote_addr, request.bytes, request.pieces);
  } else {
    gather(request, remote.remote_addr);
  }
  return true;
}

bool FakeFabric::execute(FakeQp& qp, FakeQp& peer, SendRequest& request) {
  const bool reads = request.wr.opcode == IBV_WR_RDMA_READ;
  if (request.bytes > ports[qp.attr.port_num - 1u].maxMessageBytes) {
    completeSend(qp, IBV_WC_LOC_LEN_ERR);
    enterError(qp);
    return true;
  }
  if (request.inlined.empty() &&
      !localPiecesAreGood(qp, request.pieces,
                          reads ? IBV_ACCESS_LOCAL_WRITE : 0)) {
    completeSend(qp, IBV_WC_LOC_PROT_ERR);
    enterError(qp);
    return true;
  }
  switch (request.wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return receive(qp, peer, request, true);
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      if (peer.receives.empty()) {
        return receive(qp, peer, request, false);
      }
      return !access(qp, peer, request) || receive(qp, peer, request, false);
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
      if (access(qp, peer, request)) {
        completeSend(qp, IBV_WC_SUCCESS);
      }
      return true;
    default:
      completeSend(qp, IBV_WC_LOC_QP_OP_ERR);
      enterError(qp);
      return true;
  }
}

// Nobody answers: true when that has lasted too long.
bool FakeFabric::retry(FakeQp& qp) {
  const auto time = std::chrono::steady_clock::now();
  if (!qp.retryUntil) {
    qp.retryUntil = time + config.retryTime;
    work_.notify_one();
  }
  if (time < *qp.retryUntil) {
    return false;
  }
  completeSend(qp, IBV_WC_RETRY_EXC_ERR, 0x81);
  enterError(qp);
  return true;
}

bool FakeFabric::step(FakeQp& qp) {
  if (paused || qp.state != IBV_QPS_RTS || qp.sends.empty() ||
      ports[qp.attr.port_num - 1u].state != IBV_PORT_ACTIVE) {
    return false;
  }
  if (const auto failure = std::exchange(qp.failNext, std::nullopt)) {
    completeSend(qp, failure->first, failure->second);
    enterError(qp);
    return true;
  }
  FakeQp* peer = find(qp.attr.dest_qp_num);
  const bool gone = peer == nullptr || peer->state == IBV_QPS_ERR ||
                    peer->state == IBV_QPS_RESET;
  const bool connected = !gone && peer->state != IBV_QPS_INIT;
  if (gone || (connected && (peer->attr.dest_qp_num != qp.qp_num ||
                             peer->attr.rq_psn != qp.attr.sq_psn))) {
    return retry(qp);
  }
  const size_t bytes = qp.sends.front().bytes;
  if (!connected || !execute(qp, *peer, qp.sends.front())) {
    return false;
  }
  counts.bytesMoved += bytes;
  return true;
}

void FakeFabric::kick(FakeQp& qp) {
  if (config.seed != 0) {
    work_.notify_one();
    return;
  }
  while (step(qp)) {
  }
}

void FakeFabric::kickAll() {
  for (auto& [number, qp] : queuePairs) {
    kick(*qp);
  }
}

void FakeFabric::kickPeersOf(uint32_t qpn) {
  if (config.seed != 0) {
    work_.notify_one();
    return;
  }
  for (auto& [number, qp] : queuePairs) {
    if (qp->attr.dest_qp_num == qpn) {
      kick(*qp);
    }
  }
}

std::optional<std::chrono::steady_clock::time_point> FakeFabric::nextRetry()
    const {
  std::optional<std::chrono::steady_clock::time_point> next;
  for (const auto& [number, qp] : queuePairs) {
    if (qp->retryUntil && !qp->sends.empty() &&
        (!next || *qp->retryUntil < *next)) {
      next = qp->retryUntil;
    }
  }
  return next;
}

// One request after the other, of any queue pair that can; or only what has
// been retried for too long, when requests are executed where they are posted.
void FakeFabric::runDevice() {
  std::unique_lock<std::mutex> lock(mutex);
  std::vector<uint32_t> order;
  while (!stop_) {
    order.clear();
    for (const auto& [number, qp] : queuePairs) {
      if (!qp->sends.empty() && (config.seed != 0 || qp->retryUntil)) {
        order.push_back(number);
      }
    }
    std::shuffle(order.begin(), order.end(), random_);
    const bool moved = std::any_of(order.begin(), order.end(),
                                   [this](auto n) { return step(*find(n)); });
    if (moved) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    } else if (const auto next = nextRetry(); next && !paused) {
      work_.wait_until(lock, *next);
    } else {
      work_.wait(lock);
    }
  }
}

}  // namespace test
GLOO_NAMESPACE_END
