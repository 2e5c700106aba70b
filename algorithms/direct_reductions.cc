// What each direct reduction does in its rounds; those of two ranks are in
// direct_pair.cc.
#include <algorithm>

#include "algorithms/direct.h"
#include "algorithms/direct_pieces.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
// A target of its own: a function may use up its left operand, which others
// read.
template <typename At>
void DirectRun::combine(char* target, const At& at, size_t bytes) const {
  const size_t block = whole(kBlock);
  for (size_t done = 0; done < bytes; done += block) {
    const size_t part = std::min(block, bytes - done);
    char* const to = target + done;
    if (reduce_.kernel != nullptr) {
      reduce_(to, at(0) + done, at(1) + done, part);
    } else {
      copy(to, at(0) + done, part);
      reduce_(to, to, at(1) + done, part);
    }
    for (int rank = 2; rank < size_; rank++) {
      reduce_(to, to, at(rank) + done, part);
    }
  }
}

void DirectRun::combineInputs(char* target, size_t at, size_t bytes) const {
  combine(
      target, [&](int rank) { return inputs_[static_cast<size_t>(rank)] + at; },
      bytes);
}

// Targets may be operands. Kernels allow that with two of them; otherwise the
// block is reduced in memory of this thread's.
void DirectRun::combineInPlace(size_t at, size_t bytes) const {
  const bool isPlain = size_ == 2 && reduce_.kernel != nullptr;
  if (isPlain && outputs_[0] != nullptr && outputs_[1] != nullptr) {
    return reduce_.toBoth(outputs_[0] + at, outputs_[1] + at, inputs_[0] + at,
                          inputs_[1] + at, bytes);
  }
  alignas(kLine) char scratch[kBlock];
  char* const own = outputs_[static_cast<size_t>(rank_)];
  const size_t block = whole(kBlock);
  for (size_t done = 0; done < bytes; done += block) {
    const size_t part = std::min(block, bytes - done);
    char* const sum = isPlain && own != nullptr ? own + at + done : scratch;
    combineInputs(sum, at + done, part);
    for (int rank = 0; rank < size_; rank++) {
      if (char* const output = outputs_[static_cast<size_t>(rank)]) {
        copy(output + at + done, sum, part);
      }
    }
  }
}

void DirectRun::allreduce() {
  if (bytes_ >= leastInPlace_) {
    offer(input_);
    if (agreeOnOffers()) {
      return reduceInPlace();
    }
  }
  if (bytes_ <= Line::kPayloadBytes) {
    reduceInline(output_, {0, bytes_}, true);
  } else if (size_ == 2) {
    allreducePair();
  } else if (bytes_ <= wholeBytes_) {
    reduceFlat();
  } else {
    staged(true);
  }
}

// Of `part` of the inputs, where it is wanted.
void DirectRun::reduceInline(char* target, const Part& part, bool wanted) {
  const uint64_t round = begin();
  // A result may take the input's place.
  alignas(kLine) char own[Line::kPayloadBytes];
  copy(own, input_, sharedBytes_);
  publishInline(round, own, sharedBytes_);
  if (!wanted) {
    return;
  }
  waitForAll(round);
  const auto payload = [&](int rank) {
    return (rank == rank_ ? own : lane_.line(rank, round).payload) + part.begin;
  };
  if (reduce_.kernel != nullptr ||
      request_.elementSize % (2 * Line::kAlignment) != 0) {
    return combine(target, payload, part.bytes);
  }
  // A function of the caller's may rely on more than a line gives: no type has
  // more alignment than its size is a multiple of.
  alignas(kLine) char theirs[Line::kPayloadBytes];
  combine(
      target,
      [&](int rank) {
        copy(theirs, payload(rank), part.bytes);
        return static_cast<const char*>(theirs);
      },
      part.bytes);
}

// The own slot went to whoever has read it. But the result may take the input's
// place before that is read.
bool DirectRun::keepsOwnInput() const {
  return !request_.inPlace || rank_ == 0 || size_ == 2 ||
         (rank_ == 1 && reduce_.kernel != nullptr);
}

void DirectRun::combineSlots(uint64_t round, size_t place, size_t at,
                             size_t bytes) const {
  const bool keepsInput = keepsOwnInput();
  combine(
      output_ + at,
      [&](int rank) {
        return rank == rank_ && keepsInput ? input_ + at
                                           : of(rank, round) + place;
      },
      bytes);
}

void DirectRun::reduceFlat() {
  const uint64_t round = begin();
  const size_t place = lane_.inTurn(bytes_, round);
  copy(mine(round) + place, input_, bytes_);
  publish(round);
  waitForAll(round);
  combineSlots(round, place, 0, bytes_);
}

// The chunk of step s comes in in round first + s, is reduced in the next, and
// goes out in the one after that. What comes in then takes its place but for
// what holds a result: slices of all chunks lie alike, also of a shorter one. A
// slice on its way to its owner lies where slotBetween() says, and a result
// where the owner's slice for itself would.
void DirectRun::staged(bool everybody) {
  const bool wanted = everybody || rank_ == request_.root;
  const auto ranks = static_cast<size_t>(size_);
  // So many slices of one length fit a slot.
  const size_t longest = ranks * whole(chunkBytes_ / ranks);
  const size_t chunks = piecesOf(bytes_, longest);
  const size_t piece =
      wholeUp((bytes_ + chunks * ranks - 1) / (chunks * ranks));
  const size_t chunk = ranks * piece;
  uint64_t first = lane_.round() + 1;
  const auto beginOf = [&](size_t step) {
    return pieceOf(step, chunks) * chunk;
  };
  // Of its chunk.
  const auto slice = [&](size_t step, int rank) {
    const auto index = static_cast<size_t>(rank);
    return Part{
        index * piece,
        lengthOf(index, piece, lengthOf(pieceOf(step, chunks), chunk, bytes_))};
  };
  const auto copyIn = [&](size_t step) {
    for (int i = 0; i < size_; i++) {
      const int rank = inTurn(i);
      const Part part = slice(step, rank);
      if (rank != rank_) {
        copy(lane_.slotBetween(rank_, rank, first + step, piece),
             input_ + beginOf(step) + part.begin, part.bytes);
      }
    }
  };
  const auto reduceOwn = [&](size_t step) {
    const Part part = slice(step, rank_);
    const size_t at = beginOf(step) + part.begin;
    char* const result = mine(first + step) + part.begin;
    combine(
        result,
        [&](int rank) {
          return rank == rank_
                     ? input_ + at
                     : lane_.slotBetween(rank, rank_, first + step, piece);
        },
        part.bytes);
    lane_.swapPlaces(first + step);
    if (wanted) {
      copy(output_ + at, result, part.bytes);
    }
  };
  const auto copyOut = [&](size_t step) {
    for (int i = 0; i < size_ && wanted; i++) {
      const int rank = inTurn(i);
      const Part part = slice(step, rank);
      if (rank != rank_) {
        copy(output_ + beginOf(step) + part.begin,
             of(rank, first + step) + part.begin, part.bytes);
      }
    }
  };
  for (size_t step = 0; step <= chunks; step++) {
    const uint64_t round = begin();
    if (step == 1 && beginsAgain(first)) {
      first = round;
      step = 0;
    }
    if (step >= 2) {
      copyOut(step - 2);
    }
    if (step < chunks) {
      copyIn(step);
    }
    if (step >= 1) {
      reduceOwn(step - 1);
    }
    publish(round);
  }
  waitForAll(first + chunks);
  copyOut(chunks - 1);
  // The next operation writes where results lay.
  publish(first + chunks + 1);
}

void DirectRun::reduce() {
  if (bytes_ >= leastInPlace_) {
    offer(input_);
    if (agreeOnOffers()) {
      return reduceInPlace();
    }
  }
  if (bytes_ <= Line::kPayloadBytes) {
    reduceInline(output_, {0, bytes_}, rank_ == request_.root);
  } else if (size_ == 2 || bytes_ <= wholeBytes_) {
    reduceAtRoot();
  } else {
    staged(false);
  }
}

// The root alone reads and reduces, while the others bring the next chunk.
void DirectRun::reduceAtRoot() {
  const size_t chunk = whole(chunkBytes_);
  const bool isRoot = rank_ == request_.root;
  size_t left = piecesOf(bytes_, chunk);
  while (left > 0) {
    const size_t c = left - 1;
    const size_t at = c * chunk;
    const size_t length = lengthOf(c, chunk, bytes_);
    const uint64_t round = begin();
    const size_t place = lane_.inTurn(std::min(chunk, bytes_), round);
    if (!isRoot) {
      lane_.copyOver(mine(round) + place, input_ + at, length);
    } else if (!keepsOwnInput()) {
      copy(mine(round) + place, input_ + at, length);
    }
    publish(round);
    if (isRoot || othersMayOffer_) {
      waitForAll(round);
      if (beginsAgain(round)) {
        continue;
      }
    }
    if (isRoot && size_ == 2) {
      combinePair(output_ + at, input_ + at,
                  lane_.slot(1 - rank_, round) + place, length);
    } else if (isRoot) {
      combineSlots(round, place, at, length);
    }
    left--;
  }
}

void DirectRun::reduceScatter() {
  const size_t* const offsets = request_.counts.sendOffsets;
  const Part own = partOf(offsets, rank_);
  char* const target = output_ + request_.outputOffset;
  const bool isPair = size_ == 2;
  // Two ranks have one part to send each.
  const size_t piece =
      whole(chunkBytes_ / (isPair ? 1 : static_cast<size_t>(size_)));
  // (Or to itself: that place is nobody else's.)
  const auto between = [&](int from, int to, uint64_t round) {
    return lane_.slotBetween(from, to, round, piece);
  };
  if (sharedBytes_ <= Line::kPayloadBytes) {
    return reduceInline(target, own, true);
  }
  const size_t longest = longestPart(offsets);
  if (longest >= parameters_.inPlaceBytes) {
    // In place the result may overwrite what others have not read yet.
    if (!request_.inPlace) {
      offer(input_);
    }
    if (agreeOnOffers()) {
      return reduceScatterInPlace(target, own);
    }
  }
  size_t left = piecesOf(longest, piece);
  while (left > 0) {
    const size_t c = left - 1;
    const size_t at = c * piece;
    const size_t length = lengthOf(c, piece, own.bytes);
    const uint64_t round = begin();
    for (int i = 0; i < size_; i++) {
      const int rank = inTurn(i);
      const Part part = partOf(offsets, rank);
      // In place the own part is overwritten before it is read, but for two.
      if (rank != rank_ || (request_.inPlace && !isPair)) {
        copy(between(rank_, rank, round), input_ + part.begin + at,
             lengthOf(c, piece, part.bytes));
      }
    }
    publish(round);
    waitForAll(round);
    if (beginsAgain(round)) {
      continue;
    }
    const char* const ownInput = input_ + own.begin + at;
    if (isPair) {
      combinePair(target + at, ownInput, lane_.slot(1 - rank_, round), length);
    } else {
      combine(
          target + at,
          [&](int rank) {
            return rank == rank_ && !request_.inPlace
                       ? ownInput
                       : between(rank, rank_, round);
          },
          length);
    }
    lane_.swapPlaces(round);
    left--;
  }
}

}  // namespace algorithms
GLOO_NAMESPACE_END
