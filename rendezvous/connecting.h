// One rank's attempt to connect its mesh: see connect_mesh.h. What it reads is
// judged in judging.cc.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gloo/common/deadline.h"
#include "gloo/common/error.h"
#include "gloo/common/store.h"
#include "gloo/config.h"
#include "gloo/internal/mesh.h"
#include "gloo/internal/profile.h"
#include "rendezvous/claims.h"
#include "rendezvous/liveness.h"
#include "rendezvous/record.h"
#include "rendezvous/record_reader.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// One thread, one attempt. Borrows everything until it is over.
class Connecting {
 public:
  using Mesh = internal::Mesh;
  using PeerAddress = internal::PeerAddress;
  using Profile = internal::Profile;

  Connecting(Mesh& mesh, IStore& store, Deadline deadline,
             const Profile& wanted)
      : mesh_(mesh),
        store_(store),
        deadline_(deadline),
        wanted_(wanted),
        own_(mesh.address()),
        claim_(own_.nonce),
        peers_(static_cast<size_t>(own_.size)),
        begin_(Clock::now()) {}

  // Throws RendezvousException, or the cause that a peer reported.
  void run();

 private:
  using Bytes = RecordReader::Bytes;
  using Clock = Deadline::Clock;
  using milliseconds = std::chrono::milliseconds;

  static constexpr milliseconds kFirstRecheck{20};
  static constexpr milliseconds kComesAgain{10000};

  // What this rank knows of one other.
  struct Peer {
    std::optional<Bytes> seen;  // its last record
    bool known = false;         // its address was handed to the mesh
    bool probe = false;         // it contradicts us, if it is alive
    std::string trouble;        // why `seen` is of no use
    // It gave up lately: until then it may come again.
    std::optional<Clock::time_point> awaitedUntil;
    uint64_t nonce = 0;
    uint64_t hostId = 0;
    uint64_t writtenAt = 0;  // of the record whose address is known
    PeerAddress address;
  };

  void announce();
  void publish();
  void beginAnew();
  void step();
  // What it throws is told to everybody.
  template <typename Call>
  void drive(const Call& call);
  void lookForRefusals();

  // A record of rank `rank`; `old`: it may be left over.
  void consider(int rank, const Bytes& bytes, bool old);

  bool decodeAddress(int rank, const Record& record, PeerAddress* address,
                     std::string* why) const;

  void considerRefusal(int rank, const Record& refusal, bool old);
  bool isOfThisHost(int rank, const Record& refusal) const;
  void giveUpWithWhoDid();

  bool isAlive(const PeerAddress& peer);
  void checkSize(const PeerAddress& other);

  // refuse() tells the peers that the mesh knows.
  void tellToo(const PeerAddress& other);

  void accept(const Record& record, const PeerAddress& address);

  // A rank of this run that has ended before it was connected.
  bool hasDied(int rank) const {
    const Peer& peer = peers_[rank];
    return peer.known && mesh_.isGone(peer.address) &&
           isOfThisRun(peer.writtenAt);
  }

  // false: the record is of no use now.
  bool adopt(const Bytes& serialized, const PeerAddress& zero);

  // Before this rank has written anything: is another process this rank?
  void checkClaim(const Bytes& bytes);

  std::string describeDuplicate(const std::string& other) const;

  // Own record, after it was written: whoever changes it claims this rank.
  void recheckOwn(
      const std::optional<std::vector<std::optional<Bytes>>>& found);

  void recheck();
  std::vector<int> nextToRecheck();

  // Connected to the very process whose record was read.
  bool isSettled(int rank) const {
    const Peer& peer = peers_[rank];
    return rank == own_.rank ||
           (peer.known && mesh_.peerNonce(rank) == peer.nonce);
  }

  bool settled() const {
    for (int rank = 0; rank < own_.size; rank++) {
      if (!isSettled(rank)) {
        return false;
      }
    }
    return agreed_ != nullptr && mesh_.allConnected();
  }

  std::optional<std::vector<std::optional<Bytes>>> readAgain(
      const std::vector<int>& ranks) {
    return fromStore([&] { return reader_->readAgain(ranks); });
  }

  // What a store throws, of whatever class, ends the attempt for everybody.
  template <typename Call>
  auto fromStore(Call&& call) -> decltype(call()) {
    try {
      return call();
    } catch (const InvalidOperationException&) {
      throw;
    } catch (const std::exception& error) {
      giveUp(MakeString("rank ", own_.rank, ": the store (",
                        reader_->describeStore(), ") fails: ", error.what()));
    }
  }

  // Tells everybody, through the store and the mesh, and throws.
  [[noreturn]] void giveUp(const std::string& why);

  void writeRefusal(const std::string& why);

  std::string describeMissing();
  std::vector<int> hostOfRank() const;

  Mesh& mesh_;
  IStore& store_;
  Deadline deadline_;
  const Profile& wanted_;
  const PeerAddress own_;
  const Claim claim_;
  std::vector<Peer> peers_;
  Clock::time_point begin_;

  RecordReader* reader_ = nullptr;
  Bytes written_;
  std::shared_ptr<Profile> agreed_;
  milliseconds recheckPause_ = kFirstRecheck;
  int lastRechecked_ = -1;
  Clock::time_point nextRecheck_ = Clock::now() + kFirstRecheck;
};

}  // namespace rendezvous
GLOO_NAMESPACE_END
