// What a rank makes of the records that it reads.
#include "rendezvous/agreed_profile.h"
#include "rendezvous/connecting.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {
namespace {

using std::chrono::milliseconds;

// A live process answers within this, unless it is stopped.
constexpr milliseconds kProbeLimit(500);

std::string reasonOf(const Record& refusal) {
  return {refusal.extra.begin(), refusal.extra.end()};
}

}  // namespace

void Connecting::consider(int rank, const Bytes& bytes, bool old) {
  Peer& peer = peers_[rank];
  const bool changed = peer.seen != bytes;
  if (!changed && !peer.probe) {
    return;
  }
  old = old && !peer.seen;
  peer.seen = bytes;
  peer.probe = false;
  peer.trouble.clear();
  peer.awaitedUntil.reset();
  const auto record = decodeRecord(bytes, &peer.trouble);
  if (!record) {
    return;
  }
  if (record->kind == Record::Kind::kRefusal) {
    considerRefusal(rank, *record, old);
    return;
  }
  PeerAddress address;
  if (!decodeAddress(rank, *record, &address, &peer.trouble)) {
    return;
  }
  if (record->size != own_.size) {
    checkSize(address);
  } else {
    accept(*record, address);
  }
}

bool Connecting::decodeAddress(int rank, const Record& record,
                               PeerAddress* address, std::string* why) const {
  try {
    *address = mesh_.decode(record.address);
  } catch (const IoException& error) {
    *why = error.what();
    return false;
  }
  if (record.rank != rank || address->rank != rank ||
      address->size != record.size || address->nonce != record.nonce) {
    *why = MakeString("it is a record of rank ", record.rank, " of ",
                      record.size, " with an address of rank ", address->rank,
                      " of ", address->size);
    return false;
  }
  return true;
}

// The others may have given up while this rank was still on its way here, or
// before its process began. In a run that follows at once they come again.
void Connecting::considerRefusal(int rank, const Record& refusal, bool old) {
  Peer& peer = peers_[rank];
  peer.trouble = reasonOf(refusal);
  const bool ofThisHost = isOfThisHost(rank, refusal);
  if (!old || (ofThisHost && isRefusalOfThisRun(refusal.writtenAt))) {
    giveUp(std::string(peer.trouble));
  }
  if (ofThisHost && isFreshRefusal(refusal.writtenAt)) {
    // Divided first: without a limit, twice the time left is no number.
    const milliseconds most = deadline_.left() / 3 * 2;
    peer.awaitedUntil = Clock::now() + std::min(kComesAgain, most);
  }
}

void Connecting::giveUpWithWhoDid() {
  for (const Peer& peer : peers_) {
    if (peer.awaitedUntil && Clock::now() >= *peer.awaitedUntil) {
      giveUp(MakeString(peer.trouble, " (rank ", own_.rank,
                        " came after that was said, and nobody came again)"));
    }
  }
}

// Whose clock can be compared.
bool Connecting::isOfThisHost(int rank, const Record& refusal) const {
  PeerAddress writer;
  std::string why;
  return decodeAddress(rank, refusal, &writer, &why) &&
         writer.hostId == own_.hostId;
}

bool Connecting::isAlive(const PeerAddress& peer) {
  return mesh_.isAlive(peer, std::min(kProbeLimit, deadline_.left()));
}

void Connecting::checkSize(const PeerAddress& other) {
  Peer& peer = peers_[other.rank];
  if (isAlive(other)) {
    tellToo(other);
    giveUp(MakeString("the ranks disagree about the size: rank ", own_.rank,
                      " was started with size ", own_.size, " (", own_.text,
                      "), rank ", other.rank, " with size ", other.size, " (",
                      other.text, "); start all ranks with the same size"));
  }
  peer.probe = true;
  peer.trouble =
      MakeString("it is of a run with size ", other.size, ", not ", own_.size,
                 ", and nobody answers there: ", other.text);
}

void Connecting::tellToo(const PeerAddress& other) {
  try {
    mesh_.addPeer(other);
    mesh_.progress(milliseconds(1));
  } catch (const Exception&) {
    // It may have given up already, for the same reason.
  }
}

void Connecting::accept(const Record& record, const PeerAddress& address) {
  Peer& peer = peers_[address.rank];
  if (address.rank == 0 && !adopt(record.extra, address)) {
    return;
  }
  mesh_.addPeer(address);
  peer.known = true;
  peer.nonce = address.nonce;
  peer.hostId = address.hostId;
  peer.writtenAt = record.writtenAt;
  peer.address = address;
}

bool Connecting::adopt(const Bytes& serialized, const PeerAddress& zero) {
  Peer& peer = peers_[0];
  std::string disagreement;
  try {
    agreed_ = agreeOnProfile(wanted_, serialized, &disagreement);
  } catch (const IoException& error) {
    peer.trouble = error.what();
    return false;
  }
  if (disagreement.empty()) {
    return true;
  }
  agreed_ = nullptr;
  peer.trouble = MakeString("rank ", own_.rank, " (", own_.text,
                            ") disagrees with rank 0: ", disagreement,
                            "; set it alike on all ranks, or on rank 0 only");
  if (isAlive(zero)) {
    tellToo(zero);
    giveUp(std::string(peer.trouble));
  }
  peer.probe = true;
  return false;
}

void Connecting::checkClaim(const Bytes& bytes) {
  std::string why;
  const auto record = decodeRecord(bytes, &why);
  if (record && record->kind == Record::Kind::kRefusal &&
      isOfThisHost(own_.rank, *record) &&
      isRefusalOfThisRun(record->writtenAt)) {
    giveUp(reasonOf(*record));
  }
  PeerAddress other;
  if (!record || record->kind != Record::Kind::kAddress ||
      !decodeAddress(own_.rank, *record, &other, &why) ||
      other.nonce == own_.nonce) {
    return;
  }
  // An earlier context of this process, not one that is being connected now,
  // has had its time.
  const bool sameProcess = other.hostId == own_.hostId &&
                           other.pidNamespace == own_.pidNamespace &&
                           other.pid == own_.pid;
  if (sameProcess ? Claim::isHeld(other.nonce) : isAlive(other)) {
    giveUp(describeDuplicate(other.text));
  }
}

std::string Connecting::describeDuplicate(const std::string& other) const {
  return MakeString("rank ", own_.rank,
                    " is claimed by two processes: ", own_.text, " and ", other,
                    "; give each process its own rank, and each job its own "
                    "store or prefix");
}

void Connecting::recheckOwn(
    const std::optional<std::vector<std::optional<Bytes>>>& found) {
  if (!found) {
    return;
  }
  const std::optional<Bytes>& bytes = found->back();
  if (bytes && *bytes == written_) {
    return;
  }
  std::string why;
  const auto record = bytes ? decodeRecord(*bytes, &why) : std::nullopt;
  if (!record) {
    publish();  // the store was restarted, or damaged
    return;
  }
  if (record->kind == Record::Kind::kRefusal) {
    giveUp(reasonOf(*record));
  }
  PeerAddress other;
  if (!decodeAddress(own_.rank, *record, &other, &why)) {
    publish();
    return;
  }
  giveUp(describeDuplicate(other.text));
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
