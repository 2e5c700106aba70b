// What each direct collective that only moves data does in its rounds;
// reductions are in direct_reductions.cc.
#include <algorithm>

#include "algorithms/direct.h"
#include "algorithms/direct_pieces.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// A broadcast's chunks, where each rank has a core: the readers should not wait
// for all of it. (Else they only wait more often: measured with 4 ranks on 2
// cores, 64 KiB 33 us in four chunks and 10 us in one, 256 KiB 95 and 32.)
constexpr size_t kMinChunk = 16 << 10;
constexpr size_t kMaxChunk = 128 << 10;
constexpr size_t kMostChunks = 4;  // of this length at most

// What all ranks' vectors take from here on is not in any cache when it is used
// again: then what is only moved is stored past the caches, whose lines need
// not be read first. It is several times what cores have in common, as what is
// left of the results there is read in less time. Measured with 32 MiB,
// alltoall of 4 and 8 ranks on 2 cores, the time past the caches to that
// through them: vectors of 64 MiB in all 1.1 to 1.2 (8), 128 MiB 1.0 (4), 256
// MiB .9 (8), 512 MiB .98. (What glibc says of the third level is ten times as
// much on some virtual machines.) Not what two ranks pass on: alltoall and
// allgather of 256 MiB in all take .94 and .96 of the time through the caches.
constexpr size_t kCached = 128 << 20;

}  // namespace

void DirectRun::dispatch() {
  switch (request_.collective) {
    case Collective::kAllreduce:
      return allreduce();
    case Collective::kReduce:
      return reduce();
    case Collective::kBroadcast:
      return broadcast();
    case Collective::kAllgather:
    case Collective::kAllgatherv:
      return allgather();
    case Collective::kReduceScatter:
    case Collective::kReduceScatterv:
      return reduceScatter();
    case Collective::kAlltoall:
      return alltoall();
    default:
      return barrier();
  }
}

void DirectRun::choosePath(size_t vectorBytes) {
  streams_ = vectorBytes > kCached;
}

void DirectRun::copyResult(char* to, const char* from, size_t bytes) const {
  if (streams_ && to != from) {
    internal::streamingCopy(to, from, bytes);
  } else {
    copy(to, from, bytes);
  }
}

void DirectRun::barrier() {
  const uint64_t round = begin();
  publish(round);
  waitForAll(round);
}

void DirectRun::broadcastInline() {
  const uint64_t round = begin();
  const char* from = input_;
  if (rank_ == request_.root) {
    publishInline(round, input_, bytes_);
  } else {
    publish(round);
    waitFor(request_.root, round);
    from = lane_.line(request_.root, round).payload;
  }
  copy(output_, from, bytes_);
}

void DirectRun::broadcast() {
  if (bytes_ <= Line::kPayloadBytes) {
    return broadcastInline();
  }
  const bool isRoot = rank_ == request_.root;
  choosePath(static_cast<size_t>(size_) * bytes_);
  const size_t chunk =
      lane_.crowded()
          ? chunkBytes_ * (size_ == 2 ? 1 : static_cast<size_t>(size_))
          : std::min(chunkBytes_,
                     std::clamp(bytes_ / kMostChunks / kLine * kLine, kMinChunk,
                                kMaxChunk));
  const auto place = [&](int rank, uint64_t round) {
    return lane_.slotAlone(rank, round) +
           lane_.inTurn(std::min(chunk, bytes_), round);
  };
  const bool mayOffer = bytes_ >= parameters_.inPlaceBytes;
  if (isRoot && mayOffer) {
    offer(input_);
  }
  size_t left = piecesOf(bytes_, chunk);
  while (left > 0) {
    const size_t c = left - 1;
    const size_t at = c * chunk;
    const size_t length = lengthOf(c, chunk, bytes_);
    const uint64_t round = begin();
    const bool offers = offer_.input.memory != 0;
    if (isRoot && !offers) {
      lane_.copyOver(place(rank_, round), input_ + at, length);
    }
    publish(round);
    if (!isRoot) {
      waitFor(request_.root, round);
    }
    if (mayOffer && round == before_ + 1 &&
        offerOf(request_.root, round).input.memory != 0) {
      if (broadcastInPlace(round)) {
        return;
      }
      continue;
    }
    if (!isRoot) {
      copyResult(output_ + at, place(request_.root, round), length);
    }
    left--;
  }
  if (isRoot) {
    copyResult(output_, input_, bytes_);
  }
}

void DirectRun::allgather() {
  const size_t* const offsets = request_.counts.recvOffsets;
  const Part own = partOf(offsets, rank_);
  const char* const from = request_.inPlace ? output_ + own.begin : input_;
  const size_t longest = longestPart(offsets);
  const bool isInline = longest <= Line::kPayloadBytes;
  const size_t chunk = chunkBytes_;
  choosePath((static_cast<size_t>(size_) + 1) * sharedBytes_);
  const bool mayOffer = longest >= parameters_.inPlaceBytes;
  if (mayOffer) {
    if (own.bytes > 0) {
      offer(from);
    }
    if (agreeOnOffers()) {
      copyResult(output_ + own.begin, from, own.bytes);
      return allgatherInPlace(offsets);
    }
  }
  if (size_ == 2 && !isInline && !(mayOffer && someOfferNothing())) {
    const Part part = partOf(offsets, 1 - rank_);
    return exchange({from, nullptr, own.bytes},
                    {nullptr, output_ + part.begin, part.bytes},
                    {from, output_ + own.begin, own.bytes});
  }
  const auto place = [&](int rank, uint64_t round) {
    return lane_.slot(rank, round) +
           lane_.inTurn(std::min(chunk, longest), round);
  };
  size_t left = piecesOf(longest, chunk);
  while (left > 0) {
    const size_t c = left - 1;
    const size_t at = c * chunk;
    const uint64_t round = begin();
    if (isInline) {
      publishInline(round, from, own.bytes);
    } else {
      lane_.copyOver(place(rank_, round), from + at,
                     lengthOf(c, chunk, own.bytes));
      publish(round);
    }
    // It is in the cache, and the others need a moment.
    copyResult(output_ + own.begin + at, from + at,
               lengthOf(c, chunk, own.bytes));
    waitForNear(round);
    if (own.bytes == 0 && othersMayOffer_) {
      // It has nothing to offer, and goes the way of those that have.
      waitForAll(round);
      if (allOffer(round)) {
        othersMayOffer_ = false;
        if (mapOffers(round, 0, size_)) {
          return allgatherInPlace(offsets);
        }
        continue;
      }
    }
    for (int i = 0; i < size_; i++) {
      const int rank = inTurn(i);
      const Part part = partOf(offsets, rank);
      if (rank != rank_) {
        waitFor(rank, round);
        copyResult(
            output_ + part.begin + at,
            isInline ? lane_.line(rank, round).payload : place(rank, round),
            lengthOf(c, chunk, part.bytes));
      }
    }
    if (isInline || !beginsAgain(round)) {
      left--;
    }
  }
}

void DirectRun::alltoall() {
  if (sharedBytes_ <= Line::kPayloadBytes) {
    return alltoallInline();
  }
  choosePath(2 * static_cast<size_t>(size_) * sharedBytes_);
  if (!mayBeRead() || !lane_.reads()) {
    alltoallLong(nullptr);
    return;
  }
  Lane::ReadTrial& trial = lane_.readTrial(sharedBytes_);
  trial.run([&] {
    const Way way = alltoallLong(&trial);
    return way == (trial.goesSecond() ? Way::kRead : Way::kSlots) ? 1. : 0.;
  });
}

bool DirectRun::mayBeRead() const {
  return sharedBytes_ >= parameters_.readBytes && !streams_;
}

// In place, too: piece c of all parts has been copied away before any piece c
// comes in.
DirectRun::Way DirectRun::alltoallLong(Lane::ReadTrial* trial) {
  const auto part = [&](int rank) {
    return static_cast<size_t>(rank) * bytes_;
  };
  const auto copyOwn = [&](size_t at, size_t length) {
    copyResult(output_ + part(rank_) + at, input_ + part(rank_) + at, length);
  };
  const bool chooses = trial != nullptr && trial->isOver();
  const bool wouldRead = chooses || (trial != nullptr && trial->goesSecond());
  const bool mayOffer = bytes_ >= parameters_.inPlaceBytes;
  if (mayOffer && !request_.copiesInput) {
    offer(input_);
  }
  if (wouldRead && !request_.copiesInput && offer_.input.memory == 0) {
    offer_.input = {internal::Place::kOrdinary,
                    reinterpret_cast<uintptr_t>(input_)};
    offer_.note = noteOf(trial->least());
  }
  if (mayOffer || mayBeRead()) {
    const bool isRead = offer_.input.memory == internal::Place::kOrdinary;
    const bool agreed = agreeOnOffers();
    if (chooses && agreed && isRead) {
      chooseWay(*trial);
    } else if (chooses && !agreed && trial->least()[1] == 0) {
      // No call was read, as all know alike: most often a rank takes no part in
      // that, and each offer takes a round for nothing.
      trial->choose(false);
    } else if (chooses) {
      trial->beginAgain();
    }
    if (agreed && !isRead) {
      copyOwn(0, bytes_);
      alltoallInPlace();
      return Way::kInPlace;
    }
    if (agreed && trial->goesSecond() && readAlltoall()) {
      return Way::kRead;
    }
  }
  if (size_ == 2) {
    const size_t theirs = part(1 - rank_);
    exchange({input_ + theirs, nullptr, bytes_},
             {nullptr, output_ + theirs, bytes_},
             {input_ + part(rank_), output_ + part(rank_), bytes_});
    return Way::kSlots;
  }
  const size_t piece = chunkBytes_ / static_cast<size_t>(size_) / kLine * kLine;
  const size_t pieces = piecesOf(bytes_, piece);
  size_t left = pieces;
  while (left > 0) {
    const size_t c = left - 1;
    const size_t at = c * piece;
    const size_t length = lengthOf(c, piece, bytes_);
    const uint64_t round = begin();
    for (int i = 0; i < size_; i++) {
      const int rank = inTurn(i);
      if (rank != rank_) {
        copy(lane_.slotBetween(rank_, rank, round, piece),
             input_ + part(rank) + at, length);
      }
    }
    publish(round);
    copyOwn(at, length);
    if (left == pieces) {
      waitForAll(round);
      if (beginsAgain(round)) {
        continue;
      }
    }
    waitForNear(round);
    for (int i = 0; i < size_; i++) {
      const int rank = inTurn(i);
      if (rank != rank_) {
        waitFor(rank, round);
        copyResult(output_ + part(rank) + at,
                   lane_.slotBetween(rank, rank_, round, piece), length);
      }
    }
    lane_.swapPlaces(round);
    left--;
  }
  return Way::kSlots;
}

// Everybody's parts in everybody's line. In place, the own part is where it
// was.
void DirectRun::alltoallInline() {
  const uint64_t round = begin();
  publishInline(round, input_, sharedBytes_);
  waitForAll(round);
  for (int rank = 0; rank < size_; rank++) {
    const char* const parts =
        rank == rank_ ? input_ : lane_.line(rank, round).payload;
    copy(output_ + static_cast<size_t>(rank) * bytes_,
         parts + static_cast<size_t>(rank_) * bytes_, bytes_);
  }
}

}  // namespace algorithms
GLOO_NAMESPACE_END
