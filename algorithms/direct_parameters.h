// How collectives on memory that all ranks have mapped (algorithms/direct.h)
// choose their way: what is shipped, or what a tuning file says. Equal on all
// ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "algorithms/catalogue.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// All in bytes.
struct DirectParameters {
  static constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();
  // In a chunk that is as short as this, each of the most ranks has a line.
  static constexpr size_t kLeastChunk = 8 << 10;
  // What rides in the lines is never in place, nor read elsewhere.
  static constexpr size_t kLeastInPlace = 128;
  // As shipped, for whoever measures others (benchmark --tune): the library
  // does not export shippedDirectParameters().
  static constexpr size_t kShippedHalved = size_t{32} << 10;
  static constexpr size_t kShippedInPlace = size_t{32} << 10;

  // Where each rank has a core, and where some share one: see Lane::crowded().
  struct ByCores {
    size_t apart = 0;
    size_t crowded = 0;
    size_t of(bool isCrowded) const { return isCrowded ? crowded : apart; }
    bool operator==(const ByCores&) const = default;
  };

  // An allreduce of more than two ranks: up to here everybody reads everything,
  // longer vectors are cut into a slice for each rank.
  ByCores flatBytes;
  // A reduce of more than two ranks: up to here the root reads everything,
  // longer vectors are cut into slices.
  ByCores rootedBytes;
  // An allreduce of two ranks that have a core each: shorter vectors are
  // reduced as a whole by both, of longer ones each rank reduces a half.
  size_t halvedBytes = 0;
  // Vectors (or parts of them) of the shared allocator are worked on in place
  // from here on: shorter ones are copied in less time than one more round
  // takes. (More than two ranks: an allreduce above what is flat, a reduce
  // above what its root reads in one round.)
  size_t inPlaceBytes = 0;
  // A rank's parts of an alltoall, together: from here on the kernel copies
  // them, where it lets ranks read each other's memory and takes less time than
  // two copies without it. Shorter ones it never does.
  size_t readBytes = 0;
  // Of what does not fit a slot, so much at a time, where slots are longer.
  size_t chunkBytes = kUnlimited;
  // Longer vectors (sharedBytes()) take the links, by collective.
  std::array<size_t, kCollectiveNumbers> mostBytes = unlimited();

  // A reduction of more than two ranks up to here is not cut into slices. (What
  // is flat is read at once, from a slot.)
  size_t wholeBytes(Collective collective, bool isCrowded,
                    size_t slotBytes) const {
    return collective == Collective::kReduce
               ? rootedBytes.of(isCrowded)
               : std::min(slotBytes, flatBytes.of(isCrowded));
  }
  // From here on a reduction's memory is offered to be used in place. Of more
  // than two ranks not what the root reads in one round, for which nobody is
  // to wait, nor what is flat, which knows no second try.
  size_t leastInPlace(Collective collective, int ranks, size_t wholeBytes,
                      size_t longestChunk) const {
    const size_t unoffered = collective == Collective::kReduce
                                 ? std::min(wholeBytes, longestChunk)
                                 : wholeBytes;
    return ranks == 2 ? inPlaceBytes : std::max(inPlaceBytes, unoffered + 1);
  }
  size_t mostOf(Collective collective) const {
    return mostBytes[static_cast<size_t>(collective)];
  }

 private:
  static constexpr std::array<size_t, kCollectiveNumbers> unlimited() {
    std::array<size_t, kCollectiveNumbers> all{};
    all.fill(kUnlimited);
    return all;
  }
};

// What the library knows without a file.
DirectParameters shippedDirectParameters(int ranks);

}  // namespace algorithms
GLOO_NAMESPACE_END
