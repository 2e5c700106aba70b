// What one end of a queue pair sends, in order: frames, writes, reads. Posts at
// once what the peer has receives for and the queue pair has room for, and
// keeps the rest; so posting never fails upward.
//
// Frames are copied, into the work request itself where they fit, else into
// registered memory, so that the caller's memory is free at once; writes and
// reads use the caller's memory. One request of several asks for a completion,
// and requests that are posted together ring one doorbell.
//
// Under the domain's lock.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/statistics.h"
#include "transport/base/link.h"
#include "transport/ibverbs/receive_ring.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {

// Immediates of SENDs. Without bytes, what the links say to each other:
constexpr uint32_t kCreditsImmediate = 0;              // plus the number
constexpr uint32_t kEndImmediate = uint32_t{1} << 31;  // no frame follows
// With them, of an eager message without its head, which differs by so much
// from the one before: plus link credits, a HeadDelta's `seen`, and whether it
// is of the next operation.
constexpr uint32_t kHeadlessImmediate = uint32_t{1} << 30;
constexpr int kSeenShift = 16;
constexpr uint32_t kNextOperation = uint32_t{1} << 24;

class SendQueue {
 public:
  struct Layout {
    char* memory = nullptr;  // slots * slotBytes
    uint32_t localKey = 0;
    size_t slotBytes = 0;
    uint32_t slots = 0;
    uint32_t depth = 0;  // requests on their way
    uint32_t inlineBytes = 0;
  };
  // Sequence numbers soon begin again at 0: no program has to run for long to
  // find out how that goes.
  static constexpr uint32_t kFirstSequence = UINT32_MAX - 99;
  // Request ids are `tag` plus a sequence number of 32 bits. Frames take the
  // credits along that `receives` owes.
  SendQueue(ibv_qp* qp, const Layout& layout, uint64_t tag,
            ReceiveRing& receives, internal::Statistics& counts);

  // The peer is ready, and has so many receives.
  void open(uint32_t credits);
  // False if the peer returns more than it was given.
  [[nodiscard]] bool addCredits(uint32_t n);

  // See base::Link.
  [[nodiscard]] bool send(const base::FrameHeader& header, const char* payload,
                          void* token);
  [[nodiscard]] bool sendNow(const base::ShortMessage& message,
                             const char* payload);
  // Of frames none waits, nor does what is copied.
  void hold() { hold_ = true; }
  // Memory that is not the host's is left to the device.
  [[nodiscard]] bool write(const char* local, size_t bytes, uint32_t localKey,
                           bool hosts, base::RemoteMemory remote,
                           uint32_t immediate, void* token);
  // Not of no bytes.
  [[nodiscard]] bool writeNow(const char* local, size_t bytes,
                              base::RemoteMemory remote, uint32_t immediate);
  void read(char* local, size_t bytes, uint32_t localKey,
            base::RemoteMemory remote, void* token);

  // Behind everything: tells the peer's link that nothing follows.
  void sendEnd();
  // With a message of their own; false when there is no room yet.
  bool sendCredits();

  // Requests are on their way, as far as is known: with so many bytes, and the
  // oldest is this one.
  bool busy() const { return open_ && oldest_ != next_; }
  uint64_t bytesOnTheirWay() const {
    uint64_t bytes = 0;
    for (uint32_t sequence = oldest_; sequence != next_; sequence++) {
      bytes += posted_[sequence & mask_].bytes;
    }
    return bytes;
  }
  uint32_t oldest() const { return oldest_; }
  // Posts one that does nothing and asks for a completion: its sequence; none
  // when there is no room. It takes no credit.
  std::optional<uint32_t> probe();
  bool isComplete(uint32_t sequence) const {
    return static_cast<int32_t>(oldest_ - sequence) > 0;
  }

  // A write waits for what follows, or for flush().
  bool holds() const { return chained_ > 0; }
  // Posts what can be posted now; true if anything was.
  bool flush();
  // The request `sequence`, and so all before it, is complete. False, and
  // nothing has changed: it is not on its way.
  [[nodiscard]] bool completed(uint32_t sequence);
  // Tokens whose memory is free, in order; the caller takes them.
  std::vector<void*>& done() { return done_; }
  bool anyDone() const { return !done_.empty(); }
  // Forgets everything: the queue pair is gone.
  void clear();

  bool empty() const { return count_ == 0; }
  // Requests on their way that use the caller's memory.
  uint32_t borrowed() const { return borrowed_; }
  bool endSent() const { return endSent_; }
  // errno of a post that failed; 0: none has.
  int error() const { return error_; }

 private:
  enum class What : uint8_t { kFrame, kWrite, kRead, kEnd, kCredits };
  struct Item {
    What what = What::kFrame;
    bool hosts = true;
    uint32_t immediate = base::kNoImmediate;
    uint32_t localKey = 0;
    const base::FrameHeader* header = nullptr;
    size_t head = 0;  // bytes of the header, of a frame
    const char* local = nullptr;
    size_t bytes = 0;
    base::RemoteMemory remote;
    void* token = nullptr;
  };
  // One that waits.
  struct Kept {
    Item item;
    base::FrameHeader header;
    std::vector<char> copy;  // of the payload of a frame without token
  };
  // A request that was posted.
  struct Posted {
    void* token = nullptr;
    uint32_t bytes = 0;
    bool slot = false;
    bool end = false;
  };
  // Neither is an attribute. At most one of so many requests asks for a
  // completion: of more, each would cost hardly less, and what they use be
  // known to be free later. What there is to be used (sendQueue, receives)
  // makes it fewer; with the defaults one of 8.
  static constexpr uint32_t kSignalEvery = 16;
  // Requests behind one doorbell, which is then a small part of the cost. More
  // only take memory, inlineBytes each.
  static constexpr uint32_t kChain = 16;
  static constexpr uint32_t kNone = UINT32_MAX;

  bool takesCredit(const Item& item) const;
  bool fitsInline(size_t bytes) const { return bytes <= layout_.inlineBytes; }
  bool fitsShort(size_t payload) const {
    return fitsInline(base::kShortHeadBytes + payload);
  }
  bool ready() const {
    return open_ && error_ == 0 && next_ - oldest_ < layout_.depth;
  }
  bool room(const Item& item) const;
  // One that is short, and of which the peer is told, may leave at once.
  bool mayTellNow() const { return count_ == 0 && credits_ > 0 && ready(); }
  void tellNow(uint32_t at, const char* from, size_t bytes);
  uint32_t link();
  void append(const Item& item);
  char* inlinedAt(uint32_t at) {
    return inlined_.data() + size_t{at} * layout_.inlineBytes;
  }
  uint32_t fill(const Item& item, uint32_t at, Posted& posted);
  uint16_t takeOwed() {
    return static_cast<uint16_t>(receives_.takeOwed(UINT16_MAX));
  }
  std::optional<uint32_t> deltaTo(const Item& item);
  void describe(const Item& item, uint32_t immediate, ibv_send_wr& request);
  void signal(uint32_t at);
  void post();
  bool postNow(const Item& item);
  void keep(const Item& item, bool copy);
  Kept& at(uint32_t i) { return queue_[(first_ + i) % queue_.size()]; }
  void grow();
  Posted& postedAt(uint32_t sequence) { return posted_[sequence & mask_]; }

  ibv_qp* const qp_;
  const Layout layout_;
  const uint64_t tag_;
  ReceiveRing& receives_;
  internal::Statistics& counts_;
  const uint32_t signalEvery_;

  bool open_ = false;
  bool endSent_ = false;
  int error_ = 0;
  uint32_t credits_ = 0;
  uint32_t allCredits_ = 0;

  // Waiting: a ring whose items keep their memory.
  std::vector<Kept> queue_ = std::vector<Kept>(16);
  uint32_t first_ = 0;
  uint32_t count_ = 0;

  // That the peer knows: of the last eager message that had no short head.
  // Those cost less than to remember them.
  base::ShortMessage lastHead_;

  bool hold_ = false;  // the next one, if it is a write
  // Prepared, to be posted with one doorbell. Each has its own place.
  std::array<ibv_send_wr, kChain> requests_{};
  std::array<ibv_sge, kChain> places_{};
  std::vector<char> inlined_;
  uint32_t chained_ = 0;
  // Of them, the last one that uses the caller's memory and has nobody behind
  // it yet that asks for a completion.
  uint32_t unknown_ = kNone;

  // On their way, by sequence number modulo a power of two.
  std::vector<Posted> posted_;
  const uint32_t mask_;
  uint32_t next_ = kFirstSequence;    // of the next request
  uint32_t oldest_ = kFirstSequence;  // of those not known to be complete
  uint32_t slotsTaken_ = 0;
  uint32_t nextSlot_ = 0;
  uint32_t borrowed_ = 0;
  uint32_t unsignalled_ = 0;
  std::vector<void*> done_;
};

}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
