// The inside of FakeVerbs: its objects, and how requests are executed.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gloo/config.h"
#include "tests/support/fake_verbs/fake_verbs.h"
#include "transport/ibverbs/api.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Events behind a descriptor that can be polled and read without blocking.
template <typename Event>
struct EventQueue {
  EventQueue();
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  void push(const Event& event);
  // Waits unless the descriptor is non-blocking; false: see errno.
  bool pop(std::mutex& mutex, Event* event);
  // Those that nobody fetched.
  template <typename Which>
  void forget(const Which& which);
  // The descriptor has an error for ever, as that of a device that is gone.
  void end();

  int fd = -1;
  int writer = -1;
  std::deque<Event> events;  // under the fabric's mutex
};

// Else a completion queue, a port or the device.
inline bool concernsQp(ibv_event_type event) {
  switch (event) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
      return true;
    default:
      return false;
  }
}

struct FakeContext : ibv_context {
  EventQueue<ibv_async_event> async;
  int children = 0;
};

struct FakePd : ibv_pd {
  int children = 0;
};

// Tells a local key from the remote one of the same region, so that neither
// serves for the other.
constexpr uint32_t kLocalKey = uint32_t{1} << 31;

struct FakeMr : ibv_mr {
  unsigned access = 0;
};

struct FakeChannel : ibv_comp_channel {
  EventQueue<ibv_cq*> completions;
  int children = 0;
};

struct Completion {
  ibv_wc wc{};
  bool solicited = false;
  uint32_t sendsFreed = 0;  // room of the send queue, when polled
};

struct FakeCq : ibv_cq {
  std::deque<Completion> entries;
  std::deque<Completion> held;
  enum class Armed { kNo, kSolicited, kAny } armed = Armed::kNo;
  int vector = 0;
  int children = 0;
  uint64_t unacknowledged = 0;
  bool overrun = false;
};

struct SendRequest {
  ibv_send_wr wr{};
  std::vector<ibv_sge> pieces;
  std::vector<char> inlined;
  size_t bytes = 0;
  bool signalled = false;
  bool notReady = false;  // has met an empty receive queue
};

struct RecvRequest {
  uint64_t id = 0;
  std::vector<ibv_sge> pieces;
};

struct FakeQp : ibv_qp {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  std::deque<SendRequest> sends;
  std::deque<RecvRequest> receives;
  uint32_t sendRoomUsed = 0;  // requests posted and not yet freed by a poll
  uint32_t unreported = 0;    // executed without a completion
  std::optional<std::pair<ibv_wc_status, uint32_t>> failNext;
  // Since when, plus the retry time, its peer does not answer.
  std::optional<std::chrono::steady_clock::time_point> retryUntil;
  uint64_t unacknowledged = 0;
};

// All state is under `mutex`, except what is constant.
class FakeFabric {
 public:
  explicit FakeFabric(FakeVerbsConfig config);
  ~FakeFabric();
  static FakeFabric& instance();

  const FakeVerbsConfig config;  // ports: as at the beginning
  mutable std::mutex mutex;
  std::vector<FakePort> ports;
  std::vector<std::unique_ptr<ibv_device>> devices;
  std::set<FakeContext*> contexts;
  std::set<FakeChannel*> channels;
  std::map<uint32_t, std::unique_ptr<FakeMr>> regions;  // by key
  std::map<uint32_t, std::unique_ptr<FakeQp>> queuePairs;
  std::set<FakeCq*> completionQueues;
  std::map<std::string, int> alive;
  // What was asked to go while something used it: it goes with the fabric.
  std::map<void*, std::shared_ptr<void>> refused;
  std::vector<std::string> misuse;
  FakeCounts counts;
  bool removed = false;  // the devices
  std::optional<std::chrono::milliseconds> noPeersAfter;
  bool paused = false;
  bool held = false;
  size_t heldRegistrations = 0;  // from so many bytes on; 0: none
  int waitingToRegister = 0;
  mutable std::condition_variable registering;  // either has changed
  unsigned alterOneIn = 0;                      // 0: none
  bool altered = false;                         // any has been
  std::mt19937_64 alterRandom;

  // REQUIRES the mutex.
  template <typename T>
  int refuseToDestroy(T* object) {
    if (refused.find(object) == refused.end()) {
      refused.emplace(object, std::shared_ptr<T>(object));
    }
    return EBUSY;
  }
  template <typename T>
  void destroy(T* object) {
    if (refused.erase(object) == 0) {
      delete object;
    }
  }

  struct Failure {
    int error = 0;
    int skip = 0;
    int times = 0;
  };
  std::map<FakeCall, Failure> failures;
  // The error that this call shall fail with; 0: none.
  int failureOf(FakeCall call);

  // Executes what can be: here, or by the thread.
  void kick(FakeQp& qp);
  void kickAll();
  // And those that send to it.
  void kickPeersOf(uint32_t qpn);

  void enterError(FakeQp& qp);
  void complete(FakeCq* cq, Completion completion);
  void show(FakeCq& cq, const Completion& completion);
  void completeSend(FakeQp& qp, ibv_wc_status status, uint32_t vendor = 0);
  void completeReceive(FakeQp& qp, const Completion& what);
  void raise(FakeContext& context, const ibv_async_event& event);
  void raiseOnQp(ibv_event_type type, FakeQp& qp);
  void forgetEvents(const FakeQp& qp);

  FakeQp* find(uint32_t qpn);
  uint32_t newKey() { return nextKey_ += 0x101; }
  uint32_t newQpn() { return nextQpn_++; }

 private:
  // True: the head of its send queue is gone.
  bool step(FakeQp& qp);
  bool retry(FakeQp& qp);
  bool execute(FakeQp& qp, FakeQp& peer, SendRequest& request);
  bool receive(FakeQp& qp, FakeQp& peer, SendRequest& request, bool withData);
  bool access(FakeQp& qp, FakeQp& peer, SendRequest& request);
  void alter(std::vector<char>& bytes);
  FakeMr* region(uint32_t key, const ibv_pd* pd, uint64_t address,
                 uint64_t bytes, unsigned rights);
  bool localPiecesAreGood(FakeQp& qp, const std::vector<ibv_sge>& pieces,
                          unsigned rights);
  void failBoth(FakeQp& qp, FakeQp& peer, ibv_wc_status status);
  void runDevice();
  std::optional<std::chrono::steady_clock::time_point> nextRetry() const;

  uint32_t nextKey_ = 0x1000;
  uint32_t nextQpn_ = 0x11;
  std::mt19937_64 random_;
  std::condition_variable work_;
  bool stop_ = false;
  std::thread device_;  // last: uses the others
};

// The table's entries, by topic.
void fillDeviceCalls(transport::ibverbs::Api& api);
void fillMemoryCalls(transport::ibverbs::Api& api);
void fillCompletionCalls(transport::ibverbs::Api& api);
void fillQueuePairCalls(transport::ibverbs::Api& api);
// What goes through ibv_context::ops.
void fillCompletionOps(ibv_context_ops& ops);
void fillPostOps(ibv_context_ops& ops);

}  // namespace test
GLOO_NAMESPACE_END
