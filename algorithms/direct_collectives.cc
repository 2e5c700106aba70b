// What each direct collective that only moves data does in its rounds;
// reductions are in direct_reductions.cc.
#include <algorithm>

#include "algorithms/direct.h"
#include "algorithms/direct_pieces.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// A broadcast's chunks: the readers should not wait for all of it.
constexpr size_t kMinChunk = 16 << 10;
constexpr size_t kMostChunks = 4;

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

void DirectRun::barrier() {
  const uint64_t round = begin();
  publish(round);
  waitForAll(round);
}

void DirectRun::broadcast() {
  const bool isRoot = rank_ == request_.root;
  const bool isInline = bytes_ <= Line::kPayloadBytes;
  const size_t chunk =
      std::min(lane_.slotBytes(),
               std::max(kMinChunk, bytes_ / kMostChunks / kLine * kLine));
  for (size_t c = 0; c < piecesOf(bytes_, chunk); c++) {
    const size_t at = c * chunk;
    const size_t length = lengthOf(c, chunk, bytes_);
    const uint64_t round = begin();
    if (!isRoot) {
      publish(round);
      waitFor(request_.root, round);
      copy(output_ + at,
           isInline ? lane_.line(request_.root, round).payload
                    : of(request_.root, round),
           length);
    } else if (isInline) {
      publishInline(round, input_, length);
    } else {
      copy(mine(round), input_ + at, length);
      publish(round);
    }
  }
  if (isRoot) {
    copy(output_, input_, bytes_);
  }
}

void DirectRun::allgather() {
  const size_t* const offsets = request_.counts.recvOffsets;
  const Part own = partOf(offsets, rank_);
  const char* const from = request_.inPlace ? output_ + own.begin : input_;
  const size_t longest = longestPart(offsets);
  const bool isInline = longest <= Line::kPayloadBytes;
  const size_t chunk = lane_.slotBytes();
  copy(output_ + own.begin, from, own.bytes);
  for (size_t c = 0; c < piecesOf(longest, chunk); c++) {
    const uint64_t round = begin();
    if (isInline) {
      publishInline(round, from, own.bytes);
    } else {
      copy(mine(round), from + c * chunk, lengthOf(c, chunk, own.bytes));
      publish(round);
    }
    for (int rank = 0; rank < size_; rank++) {
      const Part part = partOf(offsets, rank);
      if (rank != rank_) {
        waitFor(rank, round);
        copy(output_ + part.begin + c * chunk,
             isInline ? lane_.line(rank, round).payload : of(rank, round),
             lengthOf(c, chunk, part.bytes));
      }
    }
  }
}

// In place, too: piece c of all parts has been copied away before any piece c
// comes in.
void DirectRun::alltoall() {
  const bool isPair = size_ == 2;
  const size_t piece =
      isPair ? lane_.slotBytes()
             : lane_.slotBytes() / static_cast<size_t>(size_) / kLine * kLine;
  const auto place = [&](int rank) {
    return isPair ? 0 : static_cast<size_t>(rank) * piece;
  };
  const auto part = [&](int rank) {
    return static_cast<size_t>(rank) * bytes_;
  };
  copy(output_ + part(rank_), input_ + part(rank_), bytes_);
  for (size_t c = 0; c < piecesOf(bytes_, piece); c++) {
    const size_t at = c * piece;
    const size_t length = lengthOf(c, piece, bytes_);
    const uint64_t round = begin();
    for (int rank = 0; rank < size_; rank++) {
      if (rank != rank_) {
        copy(mine(round) + place(rank), input_ + part(rank) + at, length);
      }
    }
    publish(round);
    for (int rank = 0; rank < size_; rank++) {
      if (rank != rank_) {
        waitFor(rank, round);
        copy(output_ + part(rank) + at, of(rank, round) + place(rank_), length);
      }
    }
  }
}

}  // namespace algorithms
GLOO_NAMESPACE_END
