// The protocol of one pair: numbered messages, eager with credits, announced
// or straight into advertised memory; bound buffers; put and get.
//
// Messages. Every message is *introduced* once, in the order of the sends: by
// its eager frame, by the first part of a direct transfer, or by an announce.
// Introductions of a pair are numbered 1, 2, ... (modulo 2^32); every frame
// carries `seen`, the number of the last introduction that its sender has
// processed. Messages on one slot meet receives in this order.
//
// Adverts. A receive that is too long for an eager message tells the peer where
// its memory is, together with its position p among the receives that wait on
// that slot, and with `seen`. The sender counts the messages that it introduced
// on the slot and that the peer had not seen: the first of them take the first
// receives. So if p is one of them, the advert belongs to that message: it
// serves an announced one, and is void for one that has left already. Otherwise
// it is kept for the (p - unseen)th message to come. Both sides so agree
// without a number that would have to be remembered for every slot ever used.
//
// Receives from any of several ranks are never advertised; they answer an
// announce. While one is open on a slot, receives behind it are not advertised
// either, since their position is not known.
//
// Memory. An eager message takes credits, which the receiver returns once its
// bytes have left bounce memory. Without credits a message is announced.
//
// Everything here REQUIRES the domain's lock, but for the public interface of
// transport::Pair, which takes it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/cause.h"
#include "gloo/internal/channel.h"
#include "gloo/transport/pair.h"
#include "transport/base/link.h"
#include "transport/base/link_tally.h"
#include "transport/base/messages.h"
#include "transport/base/progress.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Buffer;
class Context;
struct ExportedRegion;

// Where an Operation is: Operation::phase.
enum Phase : uint8_t {
  kBacklog,    // the pair is not connected yet
  kAnnounced,  // a send or a bound write that waits for memory
  kActive,     // a send whose parts are given to the link, in its turn
  kQueuedOut,  // all parts were given to the link
  kAwaitDone,  // the peer will say that it is finished
  kAnswered,   // it has said so; the link has not told of all parts yet
  kQueued,     // a receive that waits for its message
  kIncoming,   // a receive whose bytes are arriving
  kRefused,    // one whose reads are refused, until the last has ended
};

class Pair final : public transport::Pair, public LinkHandler {
 public:
  Pair(Context& context, int peer);
  ~Pair() override;

  // transport::Pair
  const Address& address() const override;
  void connect(const std::vector<char>& bytes) override;
  void close() override;
  void setSync(bool enable, bool busyPoll) override;
  std::unique_ptr<transport::Buffer> createSendBuffer(int slot, void* ptr,
                                                      size_t size) override;
  std::unique_ptr<transport::Buffer> createRecvBuffer(int slot, void* ptr,
                                                      size_t size) override;
  void send(transport::UnboundBuffer* buffer, uint64_t tag, size_t offset,
            size_t nbytes) override;
  void recv(transport::UnboundBuffer* buffer, uint64_t tag, size_t offset,
            size_t nbytes) override;
  void put(transport::UnboundBuffer* buffer, const RemoteKey& key,
           uint64_t slot, size_t offset, size_t roffset,
           size_t nbytes) override;
  void get(transport::UnboundBuffer* buffer, const RemoteKey& key,
           uint64_t slot, size_t offset, size_t roffset,
           size_t nbytes) override;
  bool isConnected() override;
  void setLocalRank(int localRank) override { localRank_ = localRank; }
  int getLocalRank() const override { return localRank_; }

  // LinkHandler
  char* onPayload(const FrameHeader& header) override;
  void onFrame(const FrameHeader& header, const char* payload) override;
  bool onMessage(const ShortMessage& message, const char* payload) override;
  void onBound(uint32_t index, uint64_t offset, const char* payload,
               size_t bytes) override;
  void onWritten(uint32_t immediate) override;
  void onComplete(void* token) override;
  void onReadRefused(void* token) override;
  void onException(const std::exception& e) override;
  void onLost(internal::Cause cause, bool ended) override;

  // ---- For Context, Buffer and UnboundBuffer ----
  int peer() const { return peer_; }
  bool linked() const { return link_ != nullptr; }
  bool peerHasEnded() const { return link_ && link_->peerHasEnded(); }
  std::shared_ptr<const PeerMemory> peerMemory() const {
    return link_ ? link_->peerMemory() : nullptr;
  }
  bool departed() const { return departed_; }
  // This side has closed the pair: as if the peer had left.
  void leave() { departed_ = closedHere_ = true; }
  // The peer has left, and could not say so.
  void depart() { departed_ = true; }
  bool closedHere() const { return closedHere_; }
  void countSend() { sends_++; }
  bool sending() const { return sends_ > 0; }
  // The peer has left: receives from any do not wait for it any more.
  void dropWildcards();
  std::string linkName() const;
  // Before there is a link: perhaps.
  bool needsRegions() const { return caps_.needsRegions; }

  // The hellos are exchanged: what has waited is sent now.
  void attach(std::unique_ptr<Link> link);
  // The context failed meanwhile: the peer is told why.
  void attachFailed(std::unique_ptr<Link> link, const internal::Cause& cause);

  // push: a message of so many bytes that were sent now would have to wait for
  // memory of the peer's.
  bool wouldAnnounce(uint64_t slot, size_t bytes) const;

  // A message of a few bytes of the host's memory, where nothing stands in the
  // way: complete. False: nothing was done.
  [[nodiscard]] bool sendNow(uint64_t slot, const char* from, size_t bytes,
                             uint64_t check);
  // Before a message starts: whatever may be refused. Throws, and then nothing
  // has changed. The lock is free while much memory is registered.
  void prepare(Operation& op, ProgressDomain::Lock& lock);
  // kMessage to, or from, this peer.
  void startSend(Operation& op);
  void startRecv(Operation& op);
  // For receives from any: whether a message waits; the receive takes the
  // first one; the receive queues, a ring of its own until the caller links it
  // with its siblings.
  bool hasArrival(uint64_t slot) const;
  void meetFirst(Operation& op);
  RecvEntry* queueFromAny(Operation& op);
  // A queued receive of a collective that has waited for long: the peer learns,
  // once, of which.
  void tellAwaited(const Operation& op);
  bool tell(const Dispute& dispute);  // false: it cannot
  void dropEntry(RecvEntry* entry);

  void startBoundWrite(Operation& op);
  void startRequest(Operation& op);  // kPutRequest, kGetRequest

  // Asks for the end of a pending operation; it may end in any state. The
  // caller waits until it is not pending.
  void cancel(Operation& op);

  // Bound receive buffers: the peer learns of the memory, which is registered
  // while the lock is free. Returns its index.
  uint32_t addBound(ProgressDomain::Lock& lock, Buffer& buffer, int slot,
                    void* ptr, size_t size, const MemoryKind& kind);
  // The peer is told to write there no more, and answers behind its last write;
  // it has answered, or will write nothing more; forgets the memory.
  void withdrawBound(uint32_t index);
  bool boundWithdrawn(uint32_t index) const;
  void removeBound(uint32_t index);
  bool receivingExport(uint32_t key) const;
  // So many times something has come from the peer, or was taken by it.
  uint64_t moved() const { return moved_; }
  // The same of what the peer has taken alone.
  uint64_t taken() const { return taken_; }
  // The peer's buffer on this slot; valid until it is released.
  const RemoteBound& useRemoteBound(int slot);
  void releaseRemoteBound(int slot);
  // What is kept of bound buffers, of both sides. For tests.
  size_t boundsKept() const { return bounds_.size() + remoteBounds_.size(); }
  // As sendNow(): a bound write. REQUIRES that it fits.
  [[nodiscard]] bool writeBoundNow(const RemoteBound& remote, const char* from,
                                   size_t bytes, uint64_t offset);

  // Gives the link more parts of what is active; true when any were taken.
  bool pump();
  bool pumpOrFail();
  // All sends are complete and have left.
  bool flushed() const {
    return sends_ == 0 && (link_ == nullptr || link_->flushed());
  }

  // Ends with "bye": nothing is sent afterwards.
  void sayBye();
  bool ended() const { return link_ == nullptr || link_->finished(); }
  // Ends with the cause: no local memory is referenced afterwards.
  void fail(const internal::Cause& cause);
  void abandon();
  // Some operation needs what the departed peer will not send any more. (What
  // we send it is complete when it has left us: the peer reads to our end.)
  bool leftWaiting() const { return waits_ > 0 || incoming_.awaited(); }
  // The peer has said bye: so do we, once our sends are complete.
  void answerBye();

 private:
  struct Bound {
    Buffer* buffer = nullptr;  // null: destroyed
    bool withdrawing = false;  // the peer has not answered yet
    int slot = 0;
    char* ptr = nullptr;
    size_t size = 0;
    int device = -1;  // of CUDA, whose memory it is
    std::unique_ptr<Region> region;
  };
  // Where the payload of the frame being read goes.
  struct Incoming {
    enum class What {
      kNothing,
      kControl,
      kDiscard,
      kOperation,
      kArrival,
      kBound,
      kExport,
    };
    What what = What::kNothing;
    Operation* op = nullptr;
    Arrival* arrival = nullptr;
    uint32_t bound = 0;  // index or key
    bool placed() const { return what >= What::kOperation; }
    bool awaited() const { return (arrival ? arrival->op : op) != nullptr; }
  };

  // pair.cc
  FrameHeader header(FrameType type, uint8_t flags = 0);
  uint32_t takeOwed();
  void sendControl(const FrameHeader& header, const char* payload = nullptr);
  void finishOperation(Operation& op, Operation::State state);
  void protocolError(const std::string& what);
  bool contradicts(const FrameHeader& header);
  bool pulls() const { return caps_.remoteRead && !caps_.remoteWrite; }
  void addWaits(int n);
  void sendAbort(const internal::Cause& cause);
  void returnCredits(uint64_t cost);
  uint64_t costOf(uint64_t bytes) const;
  std::optional<Rights> neededRights(const Operation& op);  // at its start
  const Region* ensureRegion(Operation& op, Rights rights);
  char* placeFor(const FrameHeader& header);
  char* discard(size_t bytes);
  void onDataEnd(const FrameHeader& header);
  void onAbort(const FrameHeader& header, const char* payload);

  // pair_intro.cc
  void introduce(Operation& op, SlotState& state, bool announced);
  Intro& addIntro(SlotState& state);
  void pruneSeen(uint32_t seen);
  void takeNews(uint32_t credits, uint32_t seen);

  // pair_send.cc
  void sendEager(Operation& op);
  void announce(Operation& op, SlotState& state);
  void serve(Operation& op, const StoredAdvert& advert);
  bool prepareDirect(Operation& op, const StoredAdvert& advert);
  void activate(Operation& op);
  void makeActive(Operation& op);
  void activateAtOnce(Operation& op);
  static int weightOf(const Operation& op);
  bool takesTurns(const Operation& op) const;
  size_t mostOfPart(const Operation& op) const;
  bool sendPart(Operation& op, size_t* given);
  FrameHeader partHeader(const Operation& op, uint64_t offset);
  bool writePart(Operation& op, const char* from, size_t bytes, uint64_t offset,
                 bool last);
  void partDone(Operation& op);
  Operation* announcedOperation(uint64_t slot, uint64_t number);
  void onAdvert(const FrameHeader& header);
  void onPullDone(const FrameHeader& header);
  void onCancelOfAdvert(const FrameHeader& header);
  void onSendCancelled(const FrameHeader& header);
  void cancelSend(Operation& op);

  // pair_recv.cc
  RecvEntry* queueRecv(Operation& op, SlotState& state, bool wildcard);
  Operation* takeFront(SlotState& state);
  bool agrees(const Operation& op, uint64_t bytes, uint64_t check);
  bool sameCollective(const Operation& op, uint64_t check);
  void noteIntroduction(uint32_t number);
  char* onEagerPayload(const FrameHeader& header);
  void onEagerEnd(const FrameHeader& header);
  void meet(Operation& op, Arrival& arrival);
  char* stash(const FrameHeader& header, SlotState* state, Operation* op);
  void unstash(Operation& op, Arrival& arrival);
  void onAnnounce(const FrameHeader& header);
  void takeIntroduced(RecvEntry& entry);
  void answerAnnounce(Operation& op, const Arrival& arrival);
  void sendAdvert(RecvEntry& entry, uint8_t flags, uint64_t number);
  bool mayAdvertise() const;
  bool wantsAdvert(const Operation& op) const;
  void advertiseUnblocked(SlotState& state);
  void pullMessage(Operation& op, const Arrival& arrival);
  void readParts(Operation& op);
  void endPull(Operation& op);
  void completeRecv(Operation& op, RecvEntry* entry);
  RecvEntry* directEntry(uint32_t index);
  char* onDirectPayload(const FrameHeader& header);
  bool introduceDirect(RecvEntry& entry, const FrameHeader& header);
  void onDirectEnd(const FrameHeader& header);
  uint32_t takeIndex(RecvEntry* entry);
  void freeIndex(RecvEntry& entry);
  void cancelRecv(Operation& op);
  void cancelNext(uint64_t slot);
  void dropAll(RecvEntry* entry);
  void onCancel(const FrameHeader& header);
  void onCancelReply(const FrameHeader& header);
  void onCancelOfAnnounce(const FrameHeader& header);

  // pair_awaited.cc
  void onAwaited(const FrameHeader& header);
  void onFrameInDispute(const FrameHeader& header, const char* payload);
  void onDispute(const FrameHeader& header, const char* payload);

  // pair_bound.cc
  void advertiseBound(uint32_t index);
  void writeBound(Operation& op, RemoteBound& remote);
  void writeNext(RemoteBound& remote);
  bool writesTo(uint32_t index) const;
  void onBoundAdvert(const FrameHeader& header);
  void cancelBound(Operation& op);
  void forgetUnused(std::map<int, RemoteBound>::iterator it);
  void onCancelOfBound(const FrameHeader& header);
  void answerWithdrawals();
  Bound* boundAt(uint32_t index);
  Bound* noBound(uint32_t index);
  Bound* boundFor(uint32_t index, uint64_t offset, size_t bytes);
  char* onBoundPayload(const FrameHeader& header);
  void onBoundEnd(const FrameHeader& header);
  void onBoundWritten(uint32_t index);
  void noteWritten(const Bound& bound);

  // pair_onesided.cc
  uint64_t addRequest(Operation& op);
  Operation* request(uint64_t number);
  void endRequest(Operation& op);
  void refuseRequest(uint64_t number, const std::string& why);
  char* onPutPayload(const FrameHeader& header);
  void onPutEnd(const FrameHeader& header);
  void onGet(const FrameHeader& header);
  char* onGetPayload(const FrameHeader& header);
  void onGetEnd(const FrameHeader& header);
  void onPutDone(Operation& op);
  void onDone(const FrameHeader& header, const char* payload);

  Context& context_;
  const int peer_;
  int localRank_ = 0;
  std::unique_ptr<Link> link_;
  LinkTally::Entry counted_;  // the link
  LinkCaps caps_;
  bool byeSent_ = false;
  bool departed_ = false;  // the peer said bye, or this side closed the pair
  bool closedHere_ = false;
  bool failed_ = false;
  bool heard_ = false;  // a frame of the peer's has come
  uint64_t moved_ = 0;
  uint64_t taken_ = 0;
  PumpEntry pump_{*this};

  SlotTable slots_;
  Fifo<Operation> backlog_;
  Fifo<Operation> active_;
  int inLink_ = 0;           // weight of the parts that the link has
  uint32_t introduced_ = 0;  // by us
  uint32_t seen_ = 0;        // of the peer's
  Fifo<Intro> unseen_;
  uint64_t credits_ = 0;  // that we may use
  uint64_t owed_ = 0;     // that we have to return
  uint64_t granted_ = 0;  // that the peer may use
  uint64_t waits_ = 0;    // operations that need something of the peer
  uint64_t sends_ = 0;    // that are not complete

  std::vector<RecvEntry*> advertised_;  // by index
  std::vector<uint32_t> freeIndices_;
  std::vector<Bound> bounds_;
  std::vector<uint32_t> freeBounds_;  // indices of bounds_
  std::map<int, RemoteBound> remoteBounds_;
  std::vector<uint32_t> withdrawn_;   // of the peer's; not answered yet
  std::vector<Operation*> requests_;  // put and get, by number
  std::vector<uint32_t> freeRequests_;
  uint64_t requestSerial_ = 0;
  uint64_t refusedPut_ = 0;  // number of the put being discarded
  Incoming incoming_;
  std::vector<char> discard_;
  char control_[kMaxControlPayload];
  std::unique_ptr<Address> address_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
