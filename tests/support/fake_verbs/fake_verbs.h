// RDMA devices in memory, in place of libibverbs (transport/ibverbs/api.h): for
// what no real device does when it is told to. Queue pairs are reliably
// connected within this process, with the rules of the real ones: posted
// receives are consumed in order, keys, ranges and rights are checked, a send
// queue has only so much room, and a queue pair in error flushes everything.
//
// Stricter than most devices: a send's room is free again when a completion
// behind it has been polled, completions outlive their queue pair, and misuse
// is recorded.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

struct FakePort {
  ibv_port_state state = IBV_PORT_ACTIVE;
  bool ethernet = true;
  uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_4096;
  uint32_t maxMessageBytes = 1 << 30;
  // As devices encode them; 0: neither is known.
  uint8_t speed = 0;
  uint8_t width = 0;
  // Every address is a GID of each of these versions of RoCE (on InfiniBand as
  // itself); an empty one leaves its places empty.
  std::vector<std::string> addresses = {"fe80::1", "::ffff:10.0.0.1"};
  std::vector<int> versions = {1, 2};
  std::vector<uint16_t> partitions = {0xffff};  // their keys
};

struct FakeVerbsConfig {
  std::vector<std::string> devices = {"fake0"};
  std::vector<FakePort> ports = {FakePort{}};  // of each device
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  uint32_t maxInlineBytes = 256;
  int maxCqe = 1 << 16;
  int completionVectors = 1;
  uint64_t maxRegionBytes = UINT64_MAX;
  // Locked pages are copied at a fork: ibv_fork_init is not needed.
  bool kernelCopiesAtForks = false;
  int maxQpWr = 1 << 12;
  int maxQp = 1 << 12;
  int maxReadsAtATime = 16;
  int maxSrq = 0;
  ibv_atomic_cap atomics = IBV_ATOMIC_NONE;
  // A request to a peer that does not answer fails after this time.
  std::chrono::milliseconds retryTime{500};
  // 0: requests are executed where they are posted. Else by a thread, as by a
  // device, picking among the queue pairs at random with this seed.
  uint64_t seed = 0;
};

// Calls that can be made to fail.
enum class FakeCall {
  kForkInit,
  kGetDeviceList,
  kOpenDevice,
  kQueryPort,
  kQueryGids,
  kAllocPd,
  kRegMr,
  kCreateCompChannel,
  kCreateCq,
  kResizeCq,
  kCreateQp,
  kModifyQp,
  kDestroyQp,
  kPostSend,
  kPostRecv,
  kReqNotify,
  kPollCq,  // with -1, whatever the error
};

struct FakeCounts {
  uint64_t portQueries = 0;
  uint64_t registrations = 0;
  uint64_t sendsPosted = 0;
  uint64_t signalled = 0;
  uint64_t doorbells = 0;  // calls of post_send
  uint64_t completions = 0;
  uint64_t receiverNotReady = 0;  // sends that met no posted receive
  uint64_t bytesMoved = 0;
};

class FakeFabric;

// Takes the place of the library while it lives. Thread-safe.
class FakeVerbs {
 public:
  explicit FakeVerbs(FakeVerbsConfig config = {});
  ~FakeVerbs();

  // ---- What happened.

  FakeCounts counts() const;
  // Calls that a correct program does not make: unacknowledged events, an
  // overrun completion queue, a request beyond a queue's room, ...
  std::vector<std::string> misuse() const;
  // Objects that exist: "context 1, cq 2"; empty when all were destroyed.
  std::string alive() const;
  // Numbers of the queue pairs that exist, in order of creation, and what
  // state one is in.
  std::vector<uint32_t> queuePairs() const;
  ibv_qp_state state(uint32_t qpn) const;
  // Where it sends to.
  ibv_ah_attr path(uint32_t qpn) const;
  ibv_mtu mtu(uint32_t qpn) const;
  // Of the completion queues that exist.
  std::set<int> completionVectors() const;
  // Asynchronous events that nobody has fetched.
  size_t pendingEvents() const;

  // All that the regions which begin here allow, of IBV_ACCESS_.
  unsigned accessTo(const void* ptr) const;

  // Whether the device may still write to this memory: for a peer, or because
  // of a request that is on its way.
  bool canBeWritten(const void* ptr, size_t bytes) const;

  // ---- What shall happen.

  // The next `times` such calls, after `skip` good ones, fail with `error`.
  void fail(FakeCall call, int error, int times = 1, int skip = 0);

  // The queue pair's next send request completes with this status, unexecuted,
  // and the queue pair is in error.
  void failNextSend(uint32_t qpn, ibv_wc_status status, uint32_t vendor = 0);
  // Its oldest posted receive completes so, now.
  void failReceive(uint32_t qpn, ibv_wc_status status, uint32_t vendor = 0);

  // Its oldest posted receive completes, without bytes, as if the peer had sent
  // or written with this immediate value: IBV_WC_RECV, or
  // IBV_WC_RECV_RDMA_WITH_IMM.
  void deliverImmediate(uint32_t qpn, uint32_t immediate, ibv_wc_opcode opcode);

  // A queue pair's event (and what the device does then: FATAL and ACCESS_ERR
  // put it into error, in which it is at LAST_WQE_REACHED), or one that
  // concerns a port or the device, for all contexts.
  void raiseOnQp(ibv_event_type event, uint32_t qpn);
  void raise(ibv_event_type event, int port = 1);
  // IBV_EVENT_CQ_ERR, of this queue pair's completion queue.
  void raiseOnCq(uint32_t qpn);
  void setPort(int port, ibv_port_state state);
  void replacePort(int port, const FakePort& now);

  // From now on no queue pair finds a way to its peer: connecting it fails
  // after this time, as where nobody answers to the address (ETIMEDOUT).
  void losePeers(std::chrono::milliseconds after);

  // Takes the devices from under their contexts, as the kernel does when they
  // are removed or reset: descriptors have an error, arming fails, completions
  // come no more.
  void remove();

  // From now on, one of `oneIn` sends, at random, arrives with altered bytes,
  // or cut short.
  void alterSends(uint64_t seed, unsigned oneIn);

  // Registrations of so many bytes or more take until this is called with 0.
  void holdRegistrations(size_t from);
  // Returns when one is held.
  void awaitHeldRegistration() const;

  // Nothing is executed until resume(): requests are on their way.
  void pause();
  void resume();
  // Completions are not seen until release(), which may deal them out in
  // another order: any that keeps the order of each queue.
  void holdCompletions();
  void releaseCompletions(uint64_t shuffleSeed = 0);

 private:
  const std::unique_ptr<FakeFabric> fabric_;
};

}  // namespace test
GLOO_NAMESPACE_END
