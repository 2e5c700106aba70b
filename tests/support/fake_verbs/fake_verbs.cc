#include "tests/support/fake_verbs/fake_verbs.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/support/fake_verbs/events.h"
#include "tests/support/fake_verbs/fabric.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using Lock = std::lock_guard<std::mutex>;

FakeFabric* theFabric = nullptr;

const transport::ibverbs::LoadedApi& table() {
  static const transport::ibverbs::LoadedApi loaded = [] {
    transport::ibverbs::LoadedApi made;
    made.api.emplace();
    fillDeviceCalls(*made.api);
    fillMemoryCalls(*made.api);
    fillCompletionCalls(*made.api);
    fillQueuePairCalls(*made.api);
    return made;
  }();
  return loaded;
}

FakeQp& existing(FakeFabric& fabric, uint32_t qpn) {
  FakeQp* qp = fabric.find(qpn);
  if (qp == nullptr) {
    throw std::logic_error("no such queue pair: " + std::to_string(qpn));
  }
  return *qp;
}

}  // namespace

FakeFabric::FakeFabric(FakeVerbsConfig wanted)
    : config(std::move(wanted)), ports(config.ports), random_(config.seed) {
  for (const std::string& name : config.devices) {
    auto device = std::make_unique<ibv_device>();
    std::strncpy(device->name, name.c_str(), sizeof(device->name) - 1);
    device->node_type = IBV_NODE_CA;
    device->transport_type = config.transport;
    devices.push_back(std::move(device));
  }
  device_ = std::thread([this] { runDevice(); });
}

FakeFabric::~FakeFabric() {
  {
    Lock lock(mutex);
    stop_ = true;
  }
  work_.notify_one();
  device_.join();
}

FakeFabric& FakeFabric::instance() { return *theFabric; }

int FakeFabric::failureOf(FakeCall call) {
  const auto found = failures.find(call);
  if (found == failures.end() || found->second.times == 0) {
    return 0;
  }
  Failure& failure = found->second;
  if (failure.skip > 0) {
    failure.skip--;
    return 0;
  }
  failure.times--;
  return failure.error;
}

FakeQp* FakeFabric::find(uint32_t qpn) {
  const auto found = queuePairs.find(qpn);
  return found == queuePairs.end() ? nullptr : found->second.get();
}

void FakeFabric::raise(FakeContext& context, const ibv_async_event& event) {
  context.async.push(event);
}

void FakeFabric::raiseOnQp(ibv_event_type type, FakeQp& qp) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = &qp;
  raise(*static_cast<FakeContext*>(qp.context), event);
}

// Events that nobody fetched go with it.
void FakeFabric::forgetEvents(const FakeQp& qp) {
  static_cast<FakeContext*>(qp.context)->async.forget([&](const auto& event) {
    return concernsQp(event.event_type) && event.element.qp == &qp;
  });
}

FakeVerbs::FakeVerbs(FakeVerbsConfig config)
    : fabric_(std::make_unique<FakeFabric>(std::move(config))) {
  theFabric = fabric_.get();
  transport::ibverbs::replaceApi(&table());
}

FakeVerbs::~FakeVerbs() {
  transport::ibverbs::replaceApi(nullptr);
  theFabric = nullptr;
}

FakeCounts FakeVerbs::counts() const {
  Lock lock(fabric_->mutex);
  return fabric_->counts;
}

std::vector<std::string> FakeVerbs::misuse() const {
  Lock lock(fabric_->mutex);
  return fabric_->misuse;
}

std::string FakeVerbs::alive() const {
  Lock lock(fabric_->mutex);
  std::string text;
  for (const auto& [what, count] : fabric_->alive) {
    if (count != 0) {
      text += (text.empty() ? "" : ", ") + what + " " + std::to_string(count);
    }
  }
  return text;
}

std::vector<uint32_t> FakeVerbs::queuePairs() const {
  Lock lock(fabric_->mutex);
  std::vector<uint32_t> numbers;
  for (const auto& [number, qp] : fabric_->queuePairs) {
    numbers.push_back(number);
  }
  return numbers;
}

ibv_qp_state FakeVerbs::state(uint32_t qpn) const {
  Lock lock(fabric_->mutex);
  return existing(*fabric_, qpn).state;
}

ibv_ah_attr FakeVerbs::path(uint32_t qpn) const {
  Lock lock(fabric_->mutex);
  return existing(*fabric_, qpn).attr.ah_attr;
}

ibv_mtu FakeVerbs::mtu(uint32_t qpn) const {
  Lock lock(fabric_->mutex);
  return existing(*fabric_, qpn).attr.path_mtu;
}

std::set<int> FakeVerbs::completionVectors() const {
  Lock lock(fabric_->mutex);
  std::set<int> vectors;
  for (const FakeCq* cq : fabric_->completionQueues) {
    vectors.insert(cq->vector);
  }
  return vectors;
}

size_t FakeVerbs::pendingEvents() const {
  Lock lock(fabric_->mutex);
  size_t count = 0;
  for (const FakeContext* context : fabric_->contexts) {
    count += context->async.events.size();
  }
  return count;
}

unsigned FakeVerbs::accessTo(const void* ptr) const {
  Lock lock(fabric_->mutex);
  unsigned access = 0;
  for (const auto& [key, mr] : fabric_->regions) {
    access |= mr->addr == ptr ? mr->access : 0;
  }
  return access;
}

bool FakeVerbs::canBeWritten(const void* ptr, size_t bytes) const {
  const auto first = reinterpret_cast<uint64_t>(ptr);
  const auto overlaps = [=](uint64_t start, uint64_t length) {
    return start < first + bytes && first < start + length;
  };
  Lock lock(fabric_->mutex);
  for (const auto& [number, qp] : fabric_->queuePairs) {
    if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR) {
      continue;
    }
    for (const auto& [key, mr] : fabric_->regions) {
      if (mr->pd == qp->pd && (mr->access & IBV_ACCESS_REMOTE_WRITE) != 0 &&
          overlaps(reinterpret_cast<uint64_t>(mr->addr), mr->length)) {
        return true;
      }
    }
    for (const SendRequest& request : qp->sends) {
      for (const ibv_sge& piece : request.pieces) {
        if (request.wr.opcode == IBV_WR_RDMA_READ &&
            overlaps(piece.addr, piece.length)) {
          return true;
        }
      }
    }
  }
  return false;
}

void FakeVerbs::fail(FakeCall call, int error, int times, int skip) {
  Lock lock(fabric_->mutex);
  fabric_->failures[call] = {error, skip, times};
}

void FakeVerbs::failNextSend(uint32_t qpn, ibv_wc_status status,
                             uint32_t vendor) {
  Lock lock(fabric_->mutex);
  existing(*fabric_, qpn).failNext = std::make_pair(status, vendor);
}

void FakeVerbs::failReceive(uint32_t qpn, ibv_wc_status status,
                            uint32_t vendor) {
  Lock lock(fabric_->mutex);
  FakeQp& qp = existing(*fabric_, qpn);
  if (qp.receives.empty()) {
    throw std::logic_error("no receive is posted");
  }
  Completion completion;
  completion.wc.status = status;
  completion.wc.vendor_err = vendor;
  fabric_->completeReceive(qp, completion);
  fabric_->enterError(qp);
  fabric_->kickPeersOf(qpn);
}

void FakeVerbs::deliverImmediate(uint32_t qpn, uint32_t immediate,
                                 ibv_wc_opcode opcode) {
  Lock lock(fabric_->mutex);
  FakeQp& qp = existing(*fabric_, qpn);
  if (qp.receives.empty()) {
    throw std::logic_error("no receive is posted");
  }
  Completion completion;
  completion.wc.opcode = opcode;
  completion.wc.wc_flags = IBV_WC_WITH_IMM;
  completion.wc.imm_data = htonl(immediate);
  fabric_->completeReceive(qp, completion);
}

void FakeVerbs::raiseOnQp(ibv_event_type event, uint32_t qpn) {
  Lock lock(fabric_->mutex);
  FakeQp& qp = existing(*fabric_, qpn);
  fabric_->raiseOnQp(event, qp);
  if (event == IBV_EVENT_QP_FATAL || event == IBV_EVENT_QP_ACCESS_ERR ||
      event == IBV_EVENT_QP_LAST_WQE_REACHED) {
    fabric_->enterError(qp);
    fabric_->kickPeersOf(qpn);
  }
}

void FakeVerbs::raise(ibv_event_type type, int port) {
  Lock lock(fabric_->mutex);
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  for (FakeContext* context : fabric_->contexts) {
    fabric_->raise(*context, event);
  }
}

void FakeVerbs::raiseOnCq(uint32_t qpn) {
  Lock lock(fabric_->mutex);
  FakeQp& qp = existing(*fabric_, qpn);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = qp.send_cq;
  fabric_->raise(static_cast<FakeContext&>(*qp.context), event);
}

void FakeVerbs::setPort(int port, ibv_port_state state) {
  Lock lock(fabric_->mutex);
  fabric_->ports[static_cast<size_t>(port) - 1].state = state;
  fabric_->kickAll();
}

void FakeVerbs::replacePort(int port, const FakePort& now) {
  Lock lock(fabric_->mutex);
  fabric_->ports[static_cast<size_t>(port) - 1] = now;
}

void FakeVerbs::losePeers(std::chrono::milliseconds after) {
  Lock lock(fabric_->mutex);
  fabric_->noPeersAfter = after;
}

void FakeVerbs::holdRegistrations(size_t from) {
  Lock lock(fabric_->mutex);
  fabric_->heldRegistrations = from;
  fabric_->registering.notify_all();
}

void FakeVerbs::awaitHeldRegistration() const {
  std::unique_lock<std::mutex> lock(fabric_->mutex);
  fabric_->registering.wait(lock,
                            [&] { return fabric_->waitingToRegister > 0; });
}

void FakeVerbs::remove() {
  Lock lock(fabric_->mutex);
  fabric_->removed = true;
  fabric_->paused = true;
  for (FakeContext* context : fabric_->contexts) {
    context->async.end();
  }
  for (FakeChannel* channel : fabric_->channels) {
    channel->completions.end();
  }
}

void FakeVerbs::alterSends(uint64_t seed, unsigned oneIn) {
  Lock lock(fabric_->mutex);
  fabric_->alterOneIn = oneIn;
  fabric_->alterRandom.seed(seed);
}

void FakeVerbs::pause() {
  Lock lock(fabric_->mutex);
  fabric_->paused = true;
}

void FakeVerbs::resume() {
  Lock lock(fabric_->mutex);
  fabric_->paused = false;
  fabric_->kickAll();
}

void FakeVerbs::holdCompletions() {
  Lock lock(fabric_->mutex);
  fabric_->held = true;
}

void FakeVerbs::releaseCompletions(uint64_t shuffleSeed) {
  Lock lock(fabric_->mutex);
  fabric_->held = false;
  std::mt19937_64 random(shuffleSeed);
  for (FakeCq* cq : fabric_->completionQueues) {
    // Of each queue in order; which queue is next is random.
    std::map<std::pair<uint32_t, bool>, std::deque<Completion>> queues;
    for (const Completion& completion : cq->held) {
      queues[{completion.wc.qp_num, completion.sendsFreed > 0}].push_back(
          completion);
    }
    cq->held.clear();
    while (!queues.empty()) {
      auto next = queues.begin();
      std::advance(next, random() % queues.size());
      fabric_->show(*cq, next->second.front());
      next->second.pop_front();
      if (next->second.empty()) {
        queues.erase(next);
      }
    }
  }
}

}  // namespace test
GLOO_NAMESPACE_END
