// A transport context over links: one protocol for every transport. It is the
// channel of the collectives, the mesh of the rendezvous, and a party of its
// device's connector.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/channel.h"
#include "gloo/internal/mesh.h"
#include "gloo/internal/profile.h"
#include "gloo/internal/statistics.h"
#include "gloo/transport/context.h"
#include "transport/base/agreement.h"
#include "transport/base/connector.h"
#include "transport/base/device.h"
#include "transport/base/direct.h"
#include "transport/base/fork.h"
#include "transport/base/pair.h"
#include "transport/base/peer.h"
#include "transport/base/progress.h"
#include "transport/base/region_key.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class KeptMemory;

class Context final : public transport::Context,
                      public internal::Channel,
                      public internal::Mesh,
                      public Party {
 public:
  Context(std::shared_ptr<Device> device, int rank, int size, bool lazy);
  ~Context() override;

  // transport::Context
  std::unique_ptr<transport::Pair>& getPair(int rank) override;
  std::unique_ptr<transport::Pair>& createPair(int rank) override;
  void createAndConnectAllPairs(std::shared_ptr<IStore> store) override;
  std::unique_ptr<transport::UnboundBuffer> createUnboundBuffer(
      void* ptr, size_t size) override;
  std::unique_ptr<RemoteKey> deserializeRemoteKey(
      const std::string& serialized) override;

  // internal::Channel
  uint64_t begin(uint64_t slot, uint64_t check,
                 const internal::CheckDetailsPtr& details,
                 internal::Repeats* repeats = nullptr) override;
  void contradict(const internal::Contradiction& what) override;
  void postSend(Operation& op, int dst, uint64_t slot, const void* data,
                size_t bytes, uint64_t check, bool more) override;
  void postRecv(Operation& op, int src, uint64_t slot, void* data, size_t bytes,
                uint64_t check) override;
  std::unique_ptr<internal::KeptMemory> keep(void* data, size_t bytes,
                                             bool bothWays) override;
  std::unique_ptr<KeptMemory> keepAs(MemoryKind kind, void* data, size_t bytes,
                                     bool bothWays = false);
  bool waitUntil(const std::function<bool()>& ready,
                 Deadline deadline) override;
  bool glance(const std::function<bool()>& ready) override;
  void poll() override;
  void cancel(Operation& op) override;
  void fail(internal::CausePtr cause) override;
  internal::Direct* direct() override { return direct_.get(); }
  internal::CausePtr failure() const override;
  int rank() const override { return transport::Context::rank; }
  int size() const override { return transport::Context::size; }
  std::string linkName(int peer) const override;
  size_t eagerBytes() const override { return eagerBytes_; }
  bool isBetterCopied(const internal::MemoryRange& vector,
                      size_t bytes) override;

  void tellRepeats();  // of all lanes

  // internal::Mesh
  internal::PeerAddress address() override;
  internal::PeerAddress decode(const std::vector<char>& bytes) const override;
  void addPeer(const internal::PeerAddress& peer) override;
  PeerState peerState(int rank) const override;
  uint64_t peerNonce(int rank) const override;
  std::string peerTrouble(int rank) const override;
  void progress(std::chrono::milliseconds limit) override;
  bool allConnected() const override;
  bool isAlive(const internal::PeerAddress& peer,
               std::chrono::milliseconds limit) override;
  bool isGone(const internal::PeerAddress& peer) const override;
  void refuse(const std::string& why) override;
  void complete(uint64_t worldNonce,
                std::shared_ptr<const internal::Profile> profile) override;
  void share(Deadline deadline) override;

  // Party
  Hello onHello(const Hello& theirs) override;
  void onConnected(const Hello& theirs, UniqueFd socket, uint64_t tag) override;
  void onConnectFailed(uint64_t tag, Failure failure,
                       const std::string& text) override;
  void onTimer(uint64_t tag) override;

  // ---- For Pair, Buffer, UnboundBuffer. ----
  ProgressDomain& domain() { return device_->domain(); }
  Device& device() { return *device_; }
  internal::Statistics& counts() { return device_->counts(); }
  // Throws in a forked child, where the lock may be held for ever.
  ProgressDomain::Lock lock() const {
    origin_.check("context");
    return device_->domain().lock();
  }

  // As far as is known before there are any.
  LinkCaps capsOfLinks() const { return device_->factory().caps(size() - 1); }

  // Everything below REQUIRES the lock.

  // A link has been made that copies no longer messages.
  void limitEager(size_t bytes) {
    eagerBytes_.store(std::min(eagerBytes_.load(), bytes));
  }

  // An operation of `owner`'s on memory of this kind; goes back to `operations`
  // after its end.
  Operation& newOperation(OperationOwner& owner, const MemoryKind& kind);
  Operation& newReply();
  // Starts an operation whose kind, peer, data and bytes are set. REQUIRES that
  // the pair is usable, and the peer present.
  void start(Operation& op, Pair& pair);
  void startAny(Operation& op, const std::vector<int>& sources);
  void checkSources(const std::vector<int>& sources, uint64_t slot);
  // These throw the cause when the context has failed or the peer has left.
  Pair& usablePair(int peer) {
    if (cause_ == nullptr && peer >= 0 && peer < size() && peer != rank()) {
      if (Pair* pair = pairAt(peer)) {
        return *pair;
      }
    }
    refuseOperation(peer);
  }
  void checkPresent(Pair& pair, const uint64_t* receiveSlot);
  Pair& presentPair(int peer, const uint64_t* receiveSlot) {
    Pair& pair = usablePair(peer);
    checkPresent(pair, receiveSlot);
    return pair;
  }
  // The same, for a message of so many bytes. One that is going to wait for an
  // advert looks first whether that is there already.
  Pair& pairToSendTo(int peer, uint64_t slot, size_t bytes);
  // The cause, or else that this context is being closed.
  [[noreturn]] void throwFailure(std::string_view operation) const;
  void throwIfFailed(std::string_view operation) const {
    if (cause_ != nullptr) {
      throwFailure(operation);
    }
  }
  // "recv from rank 2, slot 0x2a, 0 of 4096 bytes, over tcp"
  std::string describe(const Operation& op) const;

  // An operation has ended.
  void ended(Operation& op, Operation::State state);
  void failLocked(internal::CausePtr cause);
  void failNew(internal::Cause::Kind kind, int culprit,
               const std::string& text);
  // What threw, mostly for want of memory, has left something half changed:
  // `what` ("a message of") that rank. Takes no memory, whatever happens.
  void failAfter(const std::exception& e, const char* what, int peer) noexcept;
  // The peer cannot be reached, or closed a connection before its first word:
  // perhaps because of a third one's death, of which this rank is about to
  // hear. Unless it does within a moment, `why` is the cause.
  // `gone`: it was there, and is not any more.
  void suspect(int peer, const std::string& why, bool gone);
  internal::Cause causeOf(internal::Cause::Kind kind, int culprit,
                          const std::string& text) const;
  // A wait for one of the owner's sends, or receives, unless it is over() after
  // all: gives up the lock meanwhile.
  void timedOut(ProgressDomain::Lock& lock, const ProgressDomain::Ready& over,
                OperationOwner& owner, bool sends,
                std::chrono::nanoseconds elapsed);
  // Likewise. With what `make` returns.
  void failTimeout(ProgressDomain::Lock& lock,
                   const ProgressDomain::Ready& over,
                   const std::function<internal::Cause()>& make);
  bool failedLocked() const { return cause_ != nullptr; }
  // A check word has come with a frame. False, and the context has failed or
  // disputes, if it contradicts.
  bool hear(int peer, uint64_t slot, uint64_t word, bool isMessage);
  // See gloo/internal/repeats.h.
  void countRepeats();
  void markRepeats(uint64_t tag);
  // All that has begun is counted.
  Agreement& agreement();
  void tellAwaited();  // to who should send what collectives wait for
  void failMismatch(uint64_t tag, const internal::Statement& one,
                    const internal::Statement& other);
  bool disputing() const { return dispute_ != nullptr; }
  void onDispute(const Dispute& theirs);
  void endDispute();
  // A peer has said bye.
  void onDeparture(int peer);
  void failDeparted(int peer, const std::string& why = {});

  using Described = std::function<std::string()>;  // what is waited for
  using Pairs = std::function<bool(const Pair&)>;  // which they are

  // Waits until over(), or gives the context up when nothing has moved over
  // `with` for 2 s.
  void drain(ProgressDomain::Lock& lock, const ProgressDomain::Ready& over,
             const Described& what, const Pairs& with);
  // Ends all operations of the owner; its first receive or send, if there is.
  void cancelOwned(ProgressDomain::Lock& lock, OperationOwner& owner);
  bool cancelFirst(ProgressDomain::Lock& lock, OperationOwner& owner,
                   bool sends);
  // The owner is about to be destroyed.
  void disown(OperationOwner& owner);

  uint32_t exportRegion(ProgressDomain::Lock& lock, void* ptr, size_t size,
                        RemoteAccess access);
  void withdrawRegion(ProgressDomain::Lock& lock, uint32_t id);
  ExportedRegion* exported(uint32_t id);
  // If it allows this use of [offset, offset + bytes); else null, and why.
  ExportedRegion* exportedFor(RemoteAccess use, uint32_t id, uint64_t offset,
                              uint64_t bytes, std::string* why);
  void copyLocal(const RegionKey& key, bool isPut, char* local, int device,
                 size_t roffset, size_t bytes);
  // Between memory of the host or, one of them, of this CUDA device; and shows
  // its kernels what others wrote. False, and the context has failed: refused.
  bool copyMemory(int device, void* to, const void* from, size_t bytes);
  bool makeVisible(int device, const void* ptr);
  void registerFor(Operation& op, Rights rights);  // op.region, if need be
  // Before that, see KeptMemory; true: it has, and all is looked up again.
  bool registerAhead(ProgressDomain::Lock& lock, const Operation& op,
                     Rights rights);
  // Null: the links need none. Throws as LinkFactory::registerMemory does, also
  // for a device's memory when links use the processor. `apart`: the lock,
  // which is free meanwhile, and after a throw.
  std::unique_ptr<Region> registerMemory(void* ptr, size_t size,
                                         const MemoryKind& kind, Rights rights,
                                         ProgressDomain::Lock* apart = nullptr);
  std::weak_ptr<const void> alive() const { return alive_; }  // the context
  void forgetKept(KeptMemory& kept);  // which is about to be destroyed
  uint64_t nonce() const { return nonce_; }
  uint64_t nonceOf(int peer) const;   // the peer's context's; 0: not known yet
  bool peerHasEnded(int peer) const;  // see Link

  // ---- These take the lock. ----
  void checkUsable(const char* what) const;
  // By hand: both sides call it with the other's address.
  void connectPair(int peer, const std::vector<char>& bytes);
  void close();
  void closePair(int peer);
  void closePairs() override;
  void failLeft(int peer);  // somebody waits for it, but it has left
  std::shared_ptr<const internal::Profile> profile() const { return profile_; }

  Pool<RecvEntry> entries;
  Pool<Arrival> arrivals;
  Pool<Intro> intros;
  Pool<StoredAdvert> adverts;
  Pool<SlotState> slotStates;
  Pool<Operation> operations;
  BounceMemory bounce;

 private:
  // Tags of calls: a rank, or from here on a probe.
  static constexpr uint64_t kFirstProbe = uint64_t{1} << 32;
  static constexpr uint64_t kProbeOfRank = uint64_t{1} << 31;  // plus the rank
  static constexpr uint64_t kDisputeTimer = UINT64_MAX;
  static int rankOf(uint64_t tag) {
    return static_cast<int>(tag >= kProbeOfRank ? tag - kProbeOfRank : tag);
  }
  struct Probe {
    bool done = false;
    bool alive = false;
    uint64_t begun = Hello::kNotKnown;
  };

  internal::Cause closedCause() const;
  internal::Cause withSilent(ProgressDomain::Lock& lock, internal::Cause cause);
  static std::string closedText(int rank);
  [[noreturn]] void refuseOperation(int peer) const;
  Pair* pairAt(int peer) const {
    return static_cast<Pair*>(pairs_[static_cast<size_t>(peer)].get());
  }
  Pair& makePair(int peer);
  void goodbye(ProgressDomain::Lock& lock);
  void part(int first, int last);
  void partUnlinked(Pair& pair);
  void failPending();
  bool dispute(int peer, const Dispute& mine, const std::string& text);
  void failAfterDispute(int peer, const std::string& text);
  void endWith(internal::CausePtr cause) noexcept;

  // context_operations.cc
  void post(Operation& op, bool isSend, int peer, uint64_t slot, void* data,
            size_t bytes, uint64_t check, bool more);
  void list(Operation& op);  // in context_owned.cc
  void unlist(Operation& op);
  void cancelOne(Operation& op);
  void waitForEnd(ProgressDomain::Lock& lock, const ProgressDomain::Ready& over,
                  const Described& what, const Pairs& with);

  // context_life.cc
  // Of a pair at work; the latter where it is to take what we send.
  enum class Sign : uint8_t { kMoved, kTaken };
  // False: for so long there was no sign of these pairs. Throws nothing.
  bool waitWhileMoving(ProgressDomain::Lock& lock,
                       const ProgressDomain::Ready& over,
                       std::chrono::milliseconds limit, const Pairs& pairs,
                       Sign sign = Sign::kMoved);
  uint64_t movedBy(const Pairs& pairs, Sign sign) const;
  std::string linkNameLocked(int peer) const;
  // context_memory.cc
  bool needsRegions() const;

  // context_mesh.cc
  void addPeerLocked(const internal::PeerAddress& peer);
  bool allConnectedLocked() const;
  struct Missing {
    std::vector<int> silent;  // do not answer a greeting within a moment
    std::vector<int> late;    // have begun the fewest collectives with the tag
  };
  // `slot`: of the collective that waits.
  Missing missingRanks(ProgressDomain::Lock&, std::optional<uint64_t> slot);
  // The pid that this process knows the peer's by; 0: none.
  int visiblePid(const AddressRecord& peer) const;
  void callPeers();
  void call(int peer);
  void probe(int peer);
  Hello greeting(Purpose purpose, const Peer& to) const;
  void noteProbe(const Hello& theirs);
  void endProbe(uint64_t tag, const Probe& answer);
  bool hasAnother(const Hello& caller) const;
  void makeLink(const Hello& theirs, Hello& answer);
  std::string objection(const Hello& theirs) const;
  std::string objectionOfRank(const Hello& theirs) const;
  bool leavesWith(int peer) const;
  void completeLink(PendingLink& pending, UniqueFd socket, const Hello& theirs,
                    Pair& pair);
  void missedYet(int peer, Failure failure, const std::string& text);
  void joinLifelines();

  // context_lazy.cc
  void want(int peer);
  void missed(int peer, Failure failure, const std::string& text);
  void callLater(int peer);
  void absent(int peer, const std::string& why);
  void heardOfEnd(const internal::Cause& cause);
  bool isCalling() const;

  // context_direct.cc
  bool onOneHost() const;
  bool allShared();
  DirectLanes::Peers readablePeers();
  void awaitLifelines(Deadline deadline);
  struct Scratch;
  Scratch shareFromFirst(Deadline deadline);
  Scratch shareFromOther(Deadline deadline);

  std::shared_ptr<Device> device_;
  const bool lazy_;
  Origin origin_;
  std::atomic<size_t> eagerBytes_{0};  // read without the lock
  uint64_t nonce_;
  uint64_t worldNonce_ = 0;
  bool joined_ = false;  // lifelines
  bool closed_ = false;
  bool hasClosed_ = false;  // nothing of close() is left to do
  bool byeSaid_ = false;    // to all pairs that are linked
  bool complete_ = false;
  internal::CausePtr cause_;
  std::shared_ptr<internal::Cause> spareCause_;  // with room for its text
  internal::CausePtr dispute_;  // the cause, soon; see context_dispute.cc
  Agreement agreement_;
  std::string refusal_;  // told to everyone who calls
  std::vector<std::unique_ptr<transport::Pair>> pairs_;
  std::vector<Peer> peers_;
  PendingOperations pending_;  // that have no owner
  Fifo<OperationOwner> busyOwners_;
  std::unordered_map<uint32_t, ExportedRegion> exports_;
  uint32_t nextExport_ = 1;
  std::map<uint64_t, Probe> probes_;
  uint64_t nextProbe_ = 0;
  uint64_t serial_ = 0;
  int servedLast_ = -1;  // of several sources of a receive
  std::shared_ptr<const void> alive_ = std::make_shared<char>();
  std::multimap<const char*, KeptMemory*> kept_;  // by their first byte
  uint64_t changes_ = 0;                          // of any peer's state
  std::shared_ptr<const internal::Profile> profile_;
  std::unique_ptr<DirectLanes> direct_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
