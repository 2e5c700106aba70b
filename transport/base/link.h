// A link moves frames between two processes; the protocol above it (pair.h)
// gives them meaning. Three shapes of link are foreseen, told apart by
// LinkCaps only:
//   stream  frames with payload, read straight into the place that the handler
//           names (TCP)
//   push    also writes into memory that the peer advertised (verbs)
//   pull    also reads memory that the peer announced (shared memory)
//
// Everything here runs under the domain's lock, never blocks, and never throws
// once the link is connected: errors go to LinkHandler::onLost. But send, write
// and read may throw for want of memory: then only finishWith() and abandon()
// may follow, of which the former may throw so again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/config.h"
#include "gloo/internal/cause.h"
#include "gloo/internal/copy.h"
#include "transport/base/memory.h"
#include "transport/base/socket.h"
#include "transport/base/wire.h"

GLOO_NAMESPACE_BEGIN
namespace internal {
struct Statistics;
}
namespace transport::base {

class ProgressDomain;
class SharedAllocation;  // transport/base/shared_allocations.h

// As the immediate of a write: the peer is not told.
constexpr uint32_t kNoImmediate = UINT32_MAX;
// Tells a bound write's immediate, the index of its buffer, from an advert's.
constexpr uint32_t kBoundImmediate = uint32_t{1} << 31;

struct LinkCaps {
  bool remoteWrite = false;
  bool remoteRead = false;
  // The peer may read ours: announces say where the memory is. (Whether a
  // process may read another's is not the same in both directions.)
  bool readByPeer = false;
  // Memory of operations must be registered with the device behind the link.
  bool needsRegions = false;
  // To register as much for one call takes as long as to copy it there and
  // back.
  size_t callBytes = 0;
  // The link itself reports within a second that the peer's process has ended.
  bool reportsDeath = false;
  // Largest payload of an eager message.
  size_t eagerBytes = 0;
  // The peer is told of receives to this length as soon as they are posted. Of
  // a longer one it hears once it has announced the message, unless that is
  // read (Link::reads).
  size_t advertBytes = SIZE_MAX;
  // Bytes of eager memory that a receiver keeps for one peer at most; a message
  // costs its bytes, in whole quanta (a power of two), at least one.
  size_t creditBytes = 0;
  size_t creditQuantum = 1;
  // Largest payload of one data frame, one write or one read.
  size_t maxFrameBytes = 0;
  // A write of the host's memory that is no longer, and tells the peer, is
  // copied when it leaves: it needs no region. 0: there is no writeNow().
  size_t copiedBytes = 0;
  // An eager message that is no longer may leave by sendNow(). 0: none.
  size_t smallBytes = 0;
};

// Memory registered with the device behind a link. Deregistered on
// destruction.
class Region {
 public:
  virtual ~Region() = default;
  virtual uint64_t remoteAddress() const = 0;
  virtual uint32_t remoteKey() const = 0;
};

enum class Rights : uint8_t {
  kLocal,  // the device reads it
  kRemoteWrite,
  kRemoteRead,
  kRemoteBoth,
  kLocalWrite,  // the device writes what it reads from the peer
};

// Reads the memory of a peer's process, for as long as the kernel permits it.
// Thread-safe; may outlive the link.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  // `bytes` from there to `local`. False: they are not to be had, or may be
  // those of another process; some may have been copied.
  [[nodiscard]] virtual bool read(char* local, uint64_t remote,
                                  size_t bytes) const = 0;
};

// Memory of the peer's, as it told us.
struct RemoteMemory {
  uint64_t address = 0;
  uint32_t key = 0;
};

// What a link tells the pair above it. Called from Link::poll or from the
// domain's pollers, never from inside send, write or read. Throws nothing.
class LinkHandler {
 public:
  virtual ~LinkHandler() = default;

  // A valid header with payloadBytes > 0 has arrived: the place for exactly
  // that many bytes. Null: refused; the link stops reading and reports nothing
  // more. Valid until onFrame for this header, or until release().
  virtual char* onPayload(const FrameHeader& header) = 0;

  // A whole frame has arrived; payload is what onPayload returned.
  virtual void onFrame(const FrameHeader& header, const char* payload) = 0;

  // As both, for an eager message that has arrived whole: the handler copies
  // the payload before it returns. False: refused, as by onPayload.
  [[nodiscard]] virtual bool onMessage(const ShortMessage& message,
                                       const char* payload) {
    const FrameHeader header = message.frame();
    char* place = nullptr;
    if (message.bytes > 0) {
      place = onPayload(header);
      if (place == nullptr) {
        return false;
      }
      internal::copyMemory(place, payload, message.bytes);
    }
    onFrame(header, place);
    return true;
  }

  // All of a write to the bound buffer `index` has arrived by writeNow(), on a
  // link that cannot write itself: the handler copies it before it returns.
  virtual void onBound(uint32_t index, uint64_t offset, const char* payload,
                       size_t bytes) = 0;

  // push: a write of the peer's with this immediate is complete.
  virtual void onWritten(uint32_t immediate) = 0;

  // The send, write or read that was given this token is complete: its local
  // memory is not referenced any more (a read's holds the bytes).
  virtual void onComplete(void* token) = 0;

  // The read that was given this token is not permitted, or not possible, nor
  // will others be: reads() says so from now on. Only of links that answer it
  // as things are.
  virtual void onReadRefused(void* token) { (void)token; }

  // The link threw, mostly for want of memory: it may have lost its place, and
  // must not be read any further.
  virtual void onException(const std::exception& e) {
    onLost({internal::Cause::Kind::kIo, -1, -1, e.what()}, false);
  }

  // The peer's end is gone: end of file (ended: in order, after all frames
  // were delivered to onFrame) or a failure. Called once; nothing follows.
  virtual void onLost(internal::Cause cause, bool ended) = 0;
};

class Link {
 public:
  virtual ~Link() = default;  // abandons what is in flight

  virtual const LinkCaps& caps() const = 0;

  // Queues a frame; frames arrive in order. `payload` is borrowed until
  // onComplete(token). Returns true when that is so already (there will be no
  // onComplete). With token null the payload (at most kMaxControlPayload) is
  // copied when it cannot leave at once. Never fails upward: the queue has no
  // limit, and a failure is reported by onLost from a later poll.
  [[nodiscard]] virtual bool send(const FrameHeader& header,
                                  const char* payload, void* token) = 0;

  // A hint before send() or write(): a frame follows at once, or else a poll.
  // What is sent may wait for it.
  virtual void hold() {}

  // An eager message of at most smallBytes, where nothing stands in the way:
  // false, and nothing was done, unless the memory is free already.
  [[nodiscard]] virtual bool sendNow(const ShortMessage& message,
                                     const char* payload) {
    (void)message, (void)payload;
    return false;
  }

  // push: [local, local + bytes) to remote, then `immediate`, unless it is
  // kNoImmediate, to the peer's onWritten. In order with send.
  [[nodiscard]] virtual bool write(const char* local, size_t bytes,
                                   const Region* region, RemoteMemory remote,
                                   uint32_t immediate, void* token) {
    (void)local, (void)bytes, (void)region, (void)remote, (void)immediate;
    (void)token;
    return false;
  }
  // A bound write of at most copiedBytes (of a link without remoteWrite, too:
  // then `remote` is the offset in the buffer), where nothing stands in the
  // way: false, and nothing was done, unless the memory is free already.
  [[nodiscard]] virtual bool writeNow(const char* local, size_t bytes,
                                      RemoteMemory remote, uint32_t immediate) {
    (void)local, (void)bytes, (void)remote, (void)immediate;
    return false;
  }
  // pull: whether this end should read that announced message, or else ask the
  // peer to send it. `crowded`: cores are scarce.
  virtual bool reads(RemoteMemory remote, size_t bytes, bool crowded) const {
    (void)remote, (void)bytes, (void)crowded;
    return caps().remoteRead && !caps().remoteWrite;
  }
  // pull: remote to [local, local + bytes). Ends as send() does, or with
  // onReadRefused(token).
  [[nodiscard]] virtual bool read(char* local, size_t bytes,
                                  const Region* region, RemoteMemory remote,
                                  void* token) {
    (void)local, (void)bytes, (void)region, (void)remote, (void)token;
    return false;
  }

  // pull: the peer will be told of these bytes, and read them. It may be given
  // a shorter way to them.
  virtual void lend(const char* data, size_t bytes) { (void)data, (void)bytes; }

  // pull: the same without the link, for collectives. Null: not permitted.
  virtual std::shared_ptr<const PeerMemory> peerMemory() const {
    return nullptr;
  }

  // A hint: somebody waits for this peer now (or no longer).
  virtual void expect(bool waiting) { (void)waiting; }

  // Flush, then tell the peer's link that this was the end. A send or write
  // that follows is refused, and of its token nothing is heard. What the peer
  // still sends is delivered until onLost.
  virtual void finish() = 0;
  // The pair has failed: forgets queued frames that are not begun (their tokens
  // too), copies what is left of a begun one, so that local memory is not
  // referenced any more, sends this last frame and ends as finish() does.
  // Nothing is delivered from now on, not even onLost.
  virtual void finishWith(const FrameHeader& last, const char* payload) = 0;
  // Everything queued has left this process.
  virtual bool flushed() const = 0;
  // After finish() or finishWith(): flushed, and the peer has ended too or is
  // gone; destroying the link loses nothing.
  virtual bool finished() const = 0;
  // Stops at once: nothing in flight touches local memory after the return.
  virtual void abandon() = 0;
  // Whether the peer's process is known to have ended: none of its threads does
  // anything any more. Also of a link that has failed.
  virtual bool peerHasEnded() const { return false; }

  virtual std::string str() const = 0;
  // As its factory's, unless that makes links of several kinds.
  virtual std::string kind() const { return {}; }
};

// One side of a link that is being made: exists before the peer is known.
class PendingLink {
 public:
  virtual ~PendingLink() = default;
  // Travels in our hello; at most Hello::kMaxBlob bytes.
  virtual std::vector<char> blob() const = 0;
  // The hellos were exchanged over `socket`. Throws IoException.
  virtual std::unique_ptr<Link> complete(UniqueFd socket, const Hello& theirs,
                                         LinkHandler& handler) = 0;
  // Why complete() will throw, where that is known already; empty: it is not.
  virtual std::string trouble() const { return {}; }
};

// Memory that several processes, or ranks of one, have mapped.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual char* data() const = 0;  // begins a page; zeros at first
};

// Gives memory to peers of one host. Thread-safe; without the domain's lock,
// which it takes where it has to: memory is made and mapped meanwhile, and tens
// of milliseconds of that are no reason for other threads' operations to wait.
class MemorySharer {
 public:
  using Name = std::array<char, 16>;
  virtual ~MemorySharer() = default;

  // Where this process can be given memory; random.
  virtual Name name() const = 0;
  // By which the takers know what they are given; random.
  virtual Name makeToken() = 0;
  // Ranks that share a device have one name: each of them takes by a token of
  // its own, which differs in its first half.
  static Name tokenOf(Name token, int rank) {
    for (size_t i = 0; i < sizeof(rank); i++) {
      token[i] = static_cast<char>(token[i] ^ (rank >> (8 * i)));
    }
    return token;
  }
  struct Taker {
    Name name{};
    Name token{};
  };
  // Whole pages that should be on that node: see Topology::place().
  struct Part {
    size_t begin = 0;  // bytes
    size_t bytes = 0;
    int node = -1;
  };
  struct Plan {
    size_t bytes = 0;  // whole pages
    std::vector<Part> parts;
  };
  // Makes memory by the first of the plans that there is room for, whose index
  // is *chosen then, and gives it to those processes. Throws IoException, when
  // some of them may have it. At least one plan.
  virtual std::shared_ptr<SharedMemory> give(const std::vector<Plan>& plans,
                                             const std::vector<Taker>& takers,
                                             size_t* chosen) = 0;
  // What was given to this process with that token. Throws IoException, also
  // when it is not of that size.
  virtual std::shared_ptr<SharedMemory> take(size_t bytes,
                                             const Name& token) = 0;
  // It is not wanted, if it is there at all.
  virtual void refuse(const Name& token) noexcept = 0;

  // The same for memory of the shared allocator, with one token for all of it.
  virtual void lend(const SharedAllocation& allocation,
                    const std::vector<Taker>& takers) = 0;
  virtual std::shared_ptr<const SharedAllocation> borrow(uint64_t id,
                                                         const Name& token) = 0;
  // It is there already.
  virtual void refuseLoan(uint64_t id, const Name& token) noexcept = 0;
  // Of what was lent, nothing more is taken.
  virtual void refuseLoans(const Name& token) noexcept = 0;
};

// What stands in the way will pass: the caller is told to call again.
class NotNowException : public IoException {
 public:
  using IoException::IoException;
};

// Makes links; one for each device. Outlives them. Under the domain's lock, but
// for registerMemory() and sharer(): with and without it, by several threads.
class LinkFactory {
 public:
  virtual ~LinkFactory() = default;
  virtual std::string kind() const = 0;  // "tcp": must be equal on both sides
  // Of its links, the best first.
  virtual std::vector<std::string> kinds() const { return {kind()}; }
  // Of the links that it makes for a context with so many peers, unless a peer
  // has less.
  virtual LinkCaps caps(int peers) const = 0;
  virtual std::unique_ptr<PendingLink> prepare(int peers) = 0;
  // The same for the side that was called, and knows what the caller sent.
  // Throws IoException: the call is refused with that text. NotNowException:
  // the caller repeats it, until its deadline.
  virtual std::unique_ptr<PendingLink> answer(int peers, const Hello& theirs) {
    (void)theirs;
    return prepare(peers);
  }
  // Goes into the published address; at most AddressRecord::kMaxExtra bytes.
  virtual std::vector<char> addressExtra() const { return {}; }
  // Null when links need no registration. Throws InvalidOperationException for
  // a kind of memory that the links cannot reach, and IoException
  // at limits.
  virtual std::unique_ptr<Region> registerMemory(void* ptr, size_t bytes,
                                                 MemoryKind kind,
                                                 Rights rights) {
    (void)ptr, (void)bytes, (void)kind, (void)rights;
    return nullptr;
  }
  // Whether links of this kind() may share memory with all ranks of a host:
  // equal on all ranks, unlike whether this one's do.
  virtual bool mayShare() const { return false; }
  // Null: they do not.
  virtual MemorySharer* sharer() { return nullptr; }
  // Adds its counts.
  virtual void addStatistics(internal::Statistics& total) const = 0;
  // Waits on this device should not sleep (setSync(_, busyPoll)).
  virtual void setBusyPoll(bool) {}
};

}  // namespace transport::base
GLOO_NAMESPACE_END
