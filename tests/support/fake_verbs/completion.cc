// Completion channels and queues.
#include <algorithm>
#include <cerrno>

#include "tests/support/fake_verbs/events.h"
#include "tests/support/fake_verbs/fabric.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using Lock = std::lock_guard<std::mutex>;

FakeFabric& fabric() { return FakeFabric::instance(); }

ibv_comp_channel* createCompChannel(ibv_context* context) {
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kCreateCompChannel)) {
    errno = error;
    return nullptr;
  }
  auto channel = std::make_unique<FakeChannel>();
  channel->context = context;
  channel->fd = channel->completions.fd;
  static_cast<FakeContext*>(context)->children++;
  fabric().alive["channel"]++;
  fabric().channels.insert(channel.get());
  return channel.release();
}

int destroyCompChannel(ibv_comp_channel* handle) {
  auto* channel = static_cast<FakeChannel*>(handle);
  Lock lock(fabric().mutex);
  if (channel->children != 0) {
    return fabric().refuseToDestroy(channel);
  }
  static_cast<FakeContext*>(channel->context)->children--;
  fabric().alive["channel"]--;
  fabric().channels.erase(channel);
  fabric().destroy(channel);
  return 0;
}

ibv_cq* createCq(ibv_context* context, int cqe, void* user,
                 ibv_comp_channel* channel, int vector) {
  Lock lock(fabric().mutex);
  int error = fabric().failureOf(FakeCall::kCreateCq);
  if (cqe < 1 || cqe > fabric().config.maxCqe || vector < 0 ||
      vector >= context->num_comp_vectors) {
    error = EINVAL;
  }
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto cq = std::make_unique<FakeCq>();
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = user;
  cq->cqe = cqe;
  cq->vector = vector;
  static_cast<FakeContext*>(context)->children++;
  if (channel != nullptr) {
    static_cast<FakeChannel*>(channel)->children++;
  }
  fabric().completionQueues.insert(cq.get());
  fabric().alive["cq"]++;
  return cq.release();
}

int resizeCq(ibv_cq* handle, int cqe) {
  auto* cq = static_cast<FakeCq*>(handle);
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kResizeCq)) {
    return error;
  }
  if (cqe < static_cast<int>(cq->entries.size()) ||
      cqe > fabric().config.maxCqe) {
    return EINVAL;
  }
  cq->cqe = cqe;
  cq->armed = FakeCq::Armed::kNo;  // what its arming becomes is not specified
  return 0;
}

int destroyCq(ibv_cq* handle) {
  auto* cq = static_cast<FakeCq*>(handle);
  Lock lock(fabric().mutex);
  if (cq->children != 0) {
    return fabric().refuseToDestroy(cq);
  }
  if (cq->unacknowledged != 0) {  // the real one would wait for ever
    fabric().misuse.push_back("a CQ with unacknowledged events was destroyed");
  }
  static_cast<FakeContext*>(cq->context)->children--;
  if (auto* channel = static_cast<FakeChannel*>(cq->channel)) {
    channel->completions.forget([cq](const auto* of) { return of == cq; });
    channel->children--;
  }
  fabric().completionQueues.erase(cq);
  fabric().alive["cq"]--;
  fabric().destroy(cq);
  return 0;
}

int getCqEvent(ibv_comp_channel* handle, ibv_cq** cq, void** user) {
  auto* channel = static_cast<FakeChannel*>(handle);
  if (!channel->completions.pop(fabric().mutex, cq)) {
    return -1;
  }
  Lock lock(fabric().mutex);
  static_cast<FakeCq*>(*cq)->unacknowledged++;
  *user = (*cq)->cq_context;
  return 0;
}

void ackCqEvents(ibv_cq* cq, unsigned count) {
  Lock lock(fabric().mutex);
  if (static_cast<FakeCq*>(cq)->unacknowledged < count) {
    fabric().misuse.push_back("more CQ events were acknowledged than fetched");
  }
  static_cast<FakeCq*>(cq)->unacknowledged -= count;
}

int pollCq(ibv_cq* handle, int most, ibv_wc* wc) {
  auto* cq = static_cast<FakeCq*>(handle);
  Lock lock(fabric().mutex);
  if (fabric().failureOf(FakeCall::kPollCq) != 0) {
    return -1;
  }
  int count = 0;
  for (; count < most && !cq->entries.empty(); count++) {
    const Completion& entry = cq->entries.front();
    wc[count] = entry.wc;
    if (FakeQp* qp = fabric().find(entry.wc.qp_num)) {
      qp->sendRoomUsed -= entry.sendsFreed;
    }
    cq->entries.pop_front();
  }
  return count;
}

int reqNotifyCq(ibv_cq* handle, int solicitedOnly) {
  auto* cq = static_cast<FakeCq*>(handle);
  Lock lock(fabric().mutex);
  if (const int error = fabric().failureOf(FakeCall::kReqNotify)) {
    return error;
  }
  if (fabric().removed) {
    return EIO;
  }
  // What lies in the queue already makes no event: poll once more.
  if (cq->armed != FakeCq::Armed::kAny) {
    cq->armed =
        solicitedOnly != 0 ? FakeCq::Armed::kSolicited : FakeCq::Armed::kAny;
  }
  return 0;
}

}  // namespace

void FakeFabric::show(FakeCq& cq, const Completion& completion) {
  if (static_cast<int>(cq.entries.size()) >= cq.cqe) {
    if (!cq.overrun) {
      misuse.push_back("a CQ was overrun");
      ibv_async_event event{};
      event.event_type = IBV_EVENT_CQ_ERR;
      event.element.cq = &cq;
      raise(*static_cast<FakeContext*>(cq.context), event);
    }
    cq.overrun = true;
    return;
  }
  cq.entries.push_back(completion);
  const bool wanted =
      cq.armed == FakeCq::Armed::kAny ||
      (cq.armed == FakeCq::Armed::kSolicited &&
       (completion.solicited || completion.wc.status != IBV_WC_SUCCESS));
  if (wanted && cq.channel != nullptr) {
    cq.armed = FakeCq::Armed::kNo;
    static_cast<FakeChannel*>(cq.channel)->completions.push(&cq);
  }
}

void FakeFabric::complete(FakeCq* cq, Completion completion) {
  counts.completions++;
  if (completion.wc.status != IBV_WC_SUCCESS) {
    // Only these are defined then (ibv_poll_cq(3)).
    completion.wc.opcode = static_cast<ibv_wc_opcode>(0x55);
    completion.wc.byte_len = 0x55555555;
    completion.wc.imm_data = 0x55555555;
    completion.wc.wc_flags = 0x55;
  }
  if (held) {
    cq->held.push_back(completion);
  } else {
    show(*cq, completion);
  }
}

void fillCompletionCalls(transport::ibverbs::Api& api) {
  api.createCompChannel = &createCompChannel;
  api.destroyCompChannel = &destroyCompChannel;
  api.createCq = &createCq;
  api.resizeCq = &resizeCq;
  api.destroyCq = &destroyCq;
  api.getCqEvent = &getCqEvent;
  api.ackCqEvents = &ackCqEvents;
}

void fillCompletionOps(ibv_context_ops& ops) {
  ops.poll_cq = &pollCq;
  ops.req_notify_cq = &reqNotifyCq;
}

}  // namespace test
GLOO_NAMESPACE_END
