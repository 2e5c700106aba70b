// Direct collectives on vectors of the shared allocator, which every rank reads
// where they lie. Results of reductions are written there by the rank that has
// computed them, everything else by its owner alone.
//
// A rank whose vectors are in such memory offers them in the line of the first
// round, instead of copying a chunk into its slot. If all ranks have, they go
// on in place. If not, the round was for nothing: all begin again, as with
// other memory. So each decision depends on what all ranks have read in the
// same lines.
//
// Who has no part in an allgatherv has none to offer, as all know by the
// counts. It waits for the first round as one that does not offer, and goes on
// in place if all others have offered.
//
// Where memory is used for the first time, its owner hands it over once all
// have offered; a second round tells that it has, or some of them where there
// are many ranks, a last one whether everybody could map it.
//
// An alltoall in other memory goes the same way where ranks may read each
// other's: what they offer then are addresses, and the kernel copies.
//
// A last round keeps a rank from returning while others use its vectors. If the
// operation fails before that, the rank waits a moment until all have seen it,
// and otherwise withdraws what others may write: they write to memory that
// nobody sees any more. What they may still read is marked in the lanes' memory
// before its caller may change it, and they look at the mark when they have
// read: they fail as well then.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/direct_pieces.h"
#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Descriptors that are handed over and not taken yet: a user's processes may
// together have as many as one may have open (ulimit -n, often 1024). The next
// ranks may begin before all have taken those of the last.
constexpr int kMostOnTheWay = 128;

// Of work that nobody else has a part in, between looks at the time.
constexpr size_t kTurn = 1 << 20;
// The same of what the kernel copies.
constexpr size_t kReadTurn = 256 << 10;

template <typename Work>
void inTurns(size_t bytes, size_t turn, const Work& work) {
  for (size_t left = bytes; left > 0;) {
    const size_t at = (left - 1) / turn * turn;
    work(at, left - at);
    left = at;
  }
}

}  // namespace

size_t DirectRun::offeredBytes(int rank) const {
  switch (request_.collective) {
    case Collective::kAllgather:
    case Collective::kAllgatherv:
      return partOf(request_.counts.recvOffsets, rank).bytes;
    case Collective::kReduceScatter:
    case Collective::kReduceScatterv:
      return partOf(request_.counts.sendOffsets, size_ - 1).end();
    case Collective::kAlltoall:
      return partOf(nullptr, size_ - 1).end();
    default:
      return bytes_;
  }
}

bool DirectRun::wantsResult(int rank) const {
  return request_.collective == Collective::kAllreduce ||
         (request_.collective == Collective::kReduce && rank == request_.root);
}

void DirectRun::offer(const char* input) {
  const size_t bytes = offeredBytes(rank_);
  const bool both = wantsResult(rank_);
  Offer mine;
  bool isNew = false;
  mine.input = lane_.placeOf(input, bytes, &isNew);
  if (both && mine.input.memory != 0) {
    mine.output = lane_.placeOf(output_, bytes, &isNew);
  }
  mine.note = isNew ? 1 : 0;
  const bool whole =
      mine.input.memory != 0 && (!both || mine.output.memory != 0);
  offer_ = whole ? mine : Offer{};
}

DirectRun::Offer DirectRun::offerOf(int rank, uint64_t round) const {
  if (rank == rank_) {
    return offer_;
  }
  Offer theirs;
  std::memcpy(&theirs, lane_.line(rank, round).payload, sizeof(theirs));
  return theirs;
}

// A peer that offered in every round would keep the others for ever.
bool DirectRun::beginsAgain(uint64_t round) {
  if (!std::exchange(othersMayOffer_, false)) {
    return false;
  }
  for (int rank = 0; rank < size_; rank++) {
    if (offerOf(rank, round).input.memory != 0) {
      return true;
    }
  }
  return false;
}

bool DirectRun::someOfferNothing() const {
  for (int rank = 0; rank < size_; rank++) {
    if (offeredBytes(rank) == 0) {
      return true;
    }
  }
  return false;
}

bool DirectRun::allOffer(uint64_t round) const {
  for (int rank = 0; rank < size_; rank++) {
    if (offerOf(rank, round).input.memory == 0 && offeredBytes(rank) > 0) {
      return false;
    }
  }
  return true;
}

bool DirectRun::agreeOnOffers() {
  if (offer_.input.memory == 0) {
    othersMayOffer_ = true;
    return false;
  }
  const uint64_t round = begin();
  exposed_ = offer_.output;
  publish(round);
  waitForAll(round);
  int ordinary = 0;  // that offer such memory
  for (int rank = 0; rank < size_; rank++) {
    const uint64_t memory = offerOf(rank, round).input.memory;
    ordinary += memory == internal::Place::kOrdinary ? 1 : 0;
  }
  const bool agreed =
      offer_.input.memory == internal::Place::kOrdinary
          ? ordinary == size_
          : ordinary == 0 && allOffer(round) && mapOffers(round, 0, size_);
  offer_ = {};
  if (!agreed) {
    exposed_ = {};
  }
  return agreed;
}

bool DirectRun::mapOffer(int rank, const Offer& theirs, bool isNew) {
  const auto r = static_cast<size_t>(rank);
  const size_t bytes = offeredBytes(rank);
  if (rank == rank_ || bytes == 0) {
    inputs_[r] = input_;
    outputs_[r] = wantsResult(rank) ? output_ : nullptr;
    return true;
  }
  inputs_[r] = lane_.map(rank, theirs.input, bytes, isNew);
  outputs_[r] = wantsResult(rank) ? lane_.map(rank, theirs.output, bytes, isNew)
                                  : nullptr;
  const bool there =
      inputs_[r] != nullptr && (outputs_[r] != nullptr || !wantsResult(rank));
  if (!there && !isNew) {
    throw IoException(MakeString(
        describe(), ": rank ", rank,
        " works in shared memory that this rank does not have mapped"));
  }
  return there;
}

// The others may write to a line at any time: what it said once is not asked
// again. Where a look at them has found nothing new, there is no vote, so what
// is not there is an error then, whatever a later look finds.
bool DirectRun::mapOffers(uint64_t round, int first, int last) {
  bool isNew = false;
  for (int rank = first; rank < last; rank++) {
    isNew = isNew || offerOf(rank, round).note != 0;
  }
  if (!isNew) {
    for (int rank = first; rank < last; rank++) {
      mapOffer(rank, offerOf(rank, round), false);
    }
    return true;
  }
  std::vector<Offer> kept;  // the rounds of handing over take the lines again
  for (int rank = first; rank < last; rank++) {
    kept.push_back(offerOf(rank, round));
  }
  bool all = true;
  const int turn = std::max(1, kMostOnTheWay / (2 * (size_ - 1)));
  for (int rank = first; rank < last; rank++) {
    if ((rank - first) % turn == 0) {
      handOver(rank, std::min(rank + turn, last));
    }
    all = mapOffer(rank, kept[static_cast<size_t>(rank - first)], true) && all;
  }
  all = allSay(all);
  for (const internal::Place& place : {offer_.input, offer_.output}) {
    if (place.memory != 0) {
      lane_.settle(place.memory, all);
    }
  }
  return all;
}

bool DirectRun::allSay(bool mine) {
  const uint64_t round = begin();
  const char said = mine ? 1 : 0;
  publishInline(round, &said, sizeof(said));
  waitForAll(round);
  bool all = mine;
  for (int rank = 0; rank < size_; rank++) {
    all = all && (rank == rank_ || lane_.line(rank, round).payload[0] == 1);
  }
  return all;
}

void DirectRun::handOver(int first, int last) {
  for (const internal::Place& place : {offer_.input, offer_.output}) {
    if (place.memory != 0 && first <= rank_ && rank_ < last) {
      lane_.lend(place.memory);
    }
  }
  const uint64_t round = begin();
  publishInline(round, nullptr, 0);
  waitForAll(round);
}

void DirectRun::awaitFailure() {
  constexpr std::chrono::seconds kNews{1};
  if (channel_.waitUntil([this] { return lane_.failed(); },
                         Deadline::after(kNews))) {
    throwFailure();
  }
}

// Once this rank has published that round, others may return: if it throws
// itself, what they read from then on must not count.
bool DirectRun::finishInPlace(bool hasRead) {
  bool allHave = false;
  try {
    allHave = allSay(hasRead);
  } catch (...) {
    lane_.letGo();
    throw;
  }
  const internal::Place exposed = std::exchange(exposed_, internal::Place());
  if (lane_.hasLetGo()) {
    awaitFailure();  // says why
    throw IoException(
        MakeString(describe(),
                   ": another rank has failed, whose vectors may have changed"
                   " while this one read them"));
  }
  if (exposed.memory != 0 && lane_.isWithdrawn(exposed, bytes_)) {
    throw IoException(MakeString(
        describe(),
        ": its result shares a page with that of an operation of"
        " another context which failed meanwhile, and may not be whole"));
  }
  return allHave;
}

// Each rank a slice, which nobody else reads: what it overwrites in place, it
// has read.
void DirectRun::reduceInPlace() {
  const auto ranks = static_cast<size_t>(size_);
  const size_t piece = wholeUp((bytes_ + ranks - 1) / ranks);
  const size_t begin = std::min(static_cast<size_t>(rank_) * piece, bytes_);
  // After a failure the others wait until this rank writes no more.
  inTurns(std::min(piece, bytes_ - begin), whole(kTurn),
          [&](size_t at, size_t bytes) {
            combineInPlace(begin + at, bytes);
            lookAtTime();
          });
  finishInPlace();
}

void DirectRun::reduceScatterInPlace(char* target, const Part& own) {
  inTurns(own.bytes, whole(kTurn), [&](size_t at, size_t bytes) {
    combineInputs(target + at, own.begin + at, bytes);
    lookAtTime();
  });
  finishInPlace();
}

void DirectRun::copyLong(char* to, const char* from, size_t bytes) {
  inTurns(bytes, kTurn, [&](size_t at, size_t part) {
    copyResult(to + at, from + at, part);
    lookAtTime();
  });
}

bool DirectRun::broadcastInPlace(uint64_t round) {
  const int root = request_.root;
  const bool agreed = mapOffers(round, root, root + 1);
  offer_ = {};
  if (!agreed) {
    return false;
  }
  copyLong(output_, inputs_[static_cast<size_t>(root)], bytes_);
  finishInPlace();
  return true;
}

void DirectRun::allgatherInPlace(const size_t* offsets) {
  for (int i = 1; i < size_; i++) {
    const int rank = (rank_ + i) % size_;
    const Part part = partOf(offsets, rank);
    copyLong(output_ + part.begin, inputs_[static_cast<size_t>(rank)],
             part.bytes);
  }
  finishInPlace();
}

void DirectRun::alltoallInPlace() {
  for (int i = 1; i < size_; i++) {
    const auto rank = static_cast<size_t>((rank_ + i) % size_);
    copyLong(output_ + rank * bytes_,
             inputs_[rank] + static_cast<size_t>(rank_) * bytes_, bytes_);
  }
  finishInPlace();
}

// What goes into an offer's note, of what alltoalls have taken each way: ns in
// 32 bits each; 0: not known.
uint64_t DirectRun::noteOf(const std::array<double, 2>& times) {
  const auto ns = [](double time) {
    return static_cast<uint64_t>(std::clamp(time, 0., double{UINT32_MAX}));
  };
  return ns(times[0]) << 32 | ns(times[1]);
}

// By what all ranks' calls have taken in sum, which all see alike.
void DirectRun::chooseWay(Lane::ReadTrial& trial) {
  const uint64_t offers = lane_.round();
  bool isKnown = true;
  uint64_t read = 0;
  uint64_t slots = 0;
  for (int rank = 0; rank < size_; rank++) {
    const uint64_t note =
        rank == rank_ ? noteOf(trial.least()) : offerOf(rank, offers).note;
    isKnown = isKnown && note >> 32 != 0 && note << 32 != 0;
    slots += note >> 32;
    read += note & UINT32_MAX;
  }
  if (isKnown) {
    trial.choose(read < slots);
  } else {
    trial.beginAgain();
  }
}

// Where a rank goes on is where nobody else reads just then. Two ranks begin at
// the end, as with pieces: the first one's own part comes last.
bool DirectRun::readAlltoall() {
  const uint64_t offers = lane_.round();
  const size_t own = static_cast<size_t>(rank_) * bytes_;
  const int first = size_ == 2 ? 1 : rank_;
  bool hasRead = true;
  for (int i = 0; i < size_ && hasRead; i++) {
    const int rank = (first - i + size_) % size_;
    char* const to = output_ + static_cast<size_t>(rank) * bytes_;
    const uint64_t from = offerOf(rank, offers).input.offset + own;
    inTurns(bytes_, kReadTurn, [&](size_t at, size_t length) {
      if (rank == rank_) {
        copy(to + at, input_ + own + at, length);
      } else {
        hasRead = hasRead && lane_.read(rank, to + at, from + at, length);
      }
      lookAtTime();
    });
  }
  const bool allHave = finishInPlace(hasRead);
  if (!allHave) {
    lane_.stopReading();
  }
  return allHave;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
