#include "rendezvous/connect_mesh.h"

#include <iterator>
#include <map>
#include <optional>

#include "gloo/internal/cause.h"
#include "rendezvous/connecting.h"
#include "rendezvous/operation_deadline.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStep(1);
constexpr milliseconds kLongestRecheck(200);
// A busy store is asked less often: looks take 5% of the time.
constexpr int kRecheckShare = 20;
constexpr milliseconds kBusyRecheck(1000);
// Records in one look. Every rank looks: with all records, the store would read
// the square of the job's size each time.
constexpr size_t kMostRechecked = 64;

}  // namespace

void Connecting::run() {
  peers_[own_.rank].known = true;
  peers_[own_.rank].nonce = own_.nonce;
  peers_[own_.rank].hostId = own_.hostId;
  if (own_.rank == 0) {
    agreed_ = std::make_shared<Profile>(wanted_);
  }
  std::optional<RecordReader> reader;
  if (own_.size > 1) {
    reader_ = &reader.emplace(store_, own_.size, deadline_);
    announce();
    while (!settled()) {
      step();
    }
    recheckOwn(readAgain({own_.rank}));
  }
  agreed_->hostOfRank = hostOfRank();
  mesh_.complete(peers_[0].nonce, agreed_);
  endOfRun();
  drive([&] { mesh_.share(deadline_); });
}

// A peer has said why it gives up: so do we, to those who only look into the
// store, and to those whose call we have not taken yet.
template <typename Call>
void Connecting::drive(const Call& call) {
  try {
    call();
  } catch (const IoException& error) {
    lookForRefusals();
    writeRefusal(error.what());
    mesh_.refuse(error.what());
    throw;
  }
}

void Connecting::announce() {
  const auto before = fromStore([&] { return reader_->peekAll(); });
  if (before[own_.rank]) {
    checkClaim(*before[own_.rank]);
  }
  publish();
  beginAnew();
  std::vector<int> missing;
  for (int rank = 0; rank < own_.size; rank++) {
    if (rank == own_.rank) {
      continue;
    }
    if (before[rank]) {
      consider(rank, *before[rank], true);
    } else {
      missing.push_back(rank);
    }
  }
  reader_->start(std::move(missing));
}

void Connecting::publish() {
  Record record;
  record.rank = own_.rank;
  record.size = own_.size;
  record.nonce = own_.nonce;
  record.writtenAt = wallClockMicroseconds();
  record.address = own_.bytes;
  if (own_.rank == 0) {
    record.extra = wanted_.serialize();
    if (record.extra.size() > Record::kMaxExtraBytes) {
      throw InvalidOperationException(
          MakeString("rank 0: the tuning table has ", record.extra.size(),
                     " bytes, more than ", Record::kMaxExtraBytes,
                     "; shorten the file that GLOO_TUNING_FILE names"));
    }
  }
  written_ = encodeRecord(record);
  const OperationDeadline limit(deadline_);
  fromStore([&] { store_.set(recordKey(own_.rank), written_); });
}

// This rank has waited for the last one, for as long as that took.
void Connecting::beginAnew() {
  const auto* store = dynamic_cast<const Store*>(&store_);
  if (store == nullptr || !store->waits_for_all()) {
    return;
  }
  const auto now = Clock::now();
  if (!deadline_.never()) {
    deadline_ = Deadline(now + (deadline_.at() - begin_));
  }
  begin_ = now;
  reader_->setDeadline(deadline_);
}

void Connecting::step() {
  for (const auto& arrival : fromStore([&] { return reader_->take(); })) {
    // With a store that cannot be peeked, what comes first may be old.
    consider(arrival.rank, arrival.bytes, !reader_->canPeek());
  }
  if (settled()) {
    return;
  }
  if (deadline_.expired()) {
    giveUp(describeMissing());
  }
  if (Clock::now() >= nextRecheck_) {
    recheck();
  }
  drive([&] { mesh_.progress(std::min(kStep, deadline_.left())); });
}

// Who gave up before it knew this rank says why only in the store; here it is
// just found to be gone.
void Connecting::lookForRefusals() {
  std::vector<int> ranks;
  for (int rank = 0; rank < own_.size; rank++) {
    if (rank != own_.rank && peers_[rank].seen) {
      ranks.push_back(rank);
    }
  }
  if (ranks.empty()) {
    return;
  }
  const auto found = readAgain(ranks);
  for (size_t i = 0; found && i < ranks.size(); i++) {
    if ((*found)[i]) {
      consider(ranks[i], *(*found)[i], true);
    }
  }
}

// Those that have a record and are not connected, in turn.
std::vector<int> Connecting::nextToRecheck() {
  std::vector<int> ranks;
  int rank = lastRechecked_;
  for (int i = 0; i < own_.size && ranks.size() < kMostRechecked; i++) {
    rank = (rank + 1) % own_.size;
    if (rank != own_.rank && peers_[rank].seen && !isSettled(rank)) {
      ranks.push_back(rank);
    }
  }
  lastRechecked_ = rank;
  return ranks;
}

void Connecting::recheck() {
  recheckPause_ = std::min(2 * recheckPause_, kLongestRecheck);
  std::vector<int> ranks = nextToRecheck();
  // Who gives up says why and ends: only a rank that has ended, and whose
  // record, read afterwards, does not say why, was killed. A store that cannot
  // be read, as one that has ended with rank 0, tells no more about it.
  std::vector<int> dead;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(dead),
               [&](int rank) { return hasDied(rank); });
  ranks.push_back(own_.rank);
  const auto begin = Clock::now();
  const auto found = readAgain(ranks);
  const auto cost = std::chrono::ceil<milliseconds>(Clock::now() - begin);
  for (size_t i = 0; found && i + 1 < ranks.size(); i++) {
    if ((*found)[i]) {
      consider(ranks[i], *(*found)[i], true);
    }
  }
  if (!dead.empty()) {
    const int rank = dead.front();
    giveUp(MakeString("rank ", rank, " died while rank ", own_.rank,
                      " was connecting to it: ", peers_[rank].address.text));
  }
  recheckOwn(found);
  giveUpWithWhoDid();
  nextRecheck_ =
      Clock::now() +
      std::max(recheckPause_, std::min(kRecheckShare * cost, kBusyRecheck));
}

void Connecting::giveUp(const std::string& why) {
  writeRefusal(why);
  mesh_.refuse(why);
  throw RendezvousException(why);
}

void Connecting::writeRefusal(const std::string& why) {
  constexpr milliseconds kTellLimit(250);
  constexpr size_t kMaxText = 2048;
  failedRun();
  Record refusal;
  refusal.kind = Record::Kind::kRefusal;
  refusal.rank = own_.rank;
  refusal.size = own_.size;
  refusal.nonce = own_.nonce;
  refusal.writtenAt = wallClockMicroseconds();
  refusal.address = own_.bytes;
  refusal.extra.assign(why.begin(),
                       why.begin() + std::min(why.size(), kMaxText));
  try {
    const OperationDeadline limit(Deadline::after(kTellLimit));
    store_.set(recordKey(own_.rank), encodeRecord(refusal));
  } catch (const std::exception&) {
    // The store may be the reason; the mesh still tells.
  }
}

std::string Connecting::describeMissing() {
  constexpr int kMostShown = 8;
  std::vector<int> silent;
  std::string text;
  int shown = 0;
  for (int rank = 0; rank < own_.size; rank++) {
    const Peer& peer = peers_[rank];
    if (isSettled(rank)) {
      continue;
    }
    if (!peer.seen) {
      silent.push_back(rank);
    } else if (shown++ < kMostShown) {
      const std::string why =
          !peer.trouble.empty() ? "its record is of no use: " + peer.trouble
          : !mesh_.peerTrouble(rank).empty()
              ? "its address is stale: " + mesh_.peerTrouble(rank)
              : std::string("it did not connect");
      text += MakeString("; rank ", rank, ": ", why);
    }
  }
  if (silent.size() > 1 && reader_->asksInTurn()) {
    text += MakeString("; ", internal::listRanks({silent.front()}),
                       " never published an address (the store has only wait"
                       " and get, so it was not asked for those behind)");
  } else if (!silent.empty()) {
    text += MakeString("; ", internal::listRanks(silent),
                       " never published an address");
  }
  if (!reader_->storeTrouble().empty()) {
    text += MakeString("; the store: ", reader_->storeTrouble());
  }
  const std::chrono::duration<double> spent = Clock::now() - begin_;
  return MakeString("Timed out after ", spent.count(), " s: rank ", own_.rank,
                    " of ", own_.size, " waits for its peers (",
                    reader_->describeStore(), ")", text);
}

// Hosts get numbers in the order in which the ranks first show them.
std::vector<int> Connecting::hostOfRank() const {
  std::map<uint64_t, int> numbers;
  std::vector<int> hosts;
  for (const Peer& peer : peers_) {
    const auto next = static_cast<int>(numbers.size());
    hosts.push_back(numbers.try_emplace(peer.hostId, next).first->second);
  }
  return hosts;
}

void connectMesh(internal::Mesh& mesh, IStore& store, Deadline deadline,
                 const internal::Profile& wanted) {
  Connecting(mesh, store, deadline, wanted).run();
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
