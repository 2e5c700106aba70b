#include "algorithms/direct_sizes.h"

#include <algorithm>

#include "algorithms/direct_pieces.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Longer elements would not fit a part of a slot.
constexpr size_t kMaxElement = 64;

}  // namespace

bool hasDirect(Collective collective) {
  switch (collective) {
    case Collective::kAllreduce:
    case Collective::kReduce:
    case Collective::kBroadcast:
    case Collective::kBarrier:
    case Collective::kAllgather:
    case Collective::kAllgatherv:
    case Collective::kReduceScatter:
    case Collective::kReduceScatterv:
    case Collective::kAlltoall:
      return true;
    default:
      return false;
  }
}

bool offersDirect(const Request& request, int ranks, size_t slotBytes) {
  return request.elementSize <= kMaxElement &&
         slotBytes / static_cast<size_t>(ranks) >= kMaxElement &&
         hasDirect(request.collective);
}

DirectSizes sizesOf(const Request& request, const DirectParameters& parameters,
                    int ranks, size_t slotBytes, bool crowded) {
  const size_t elementSize = request.elementSize;
  DirectSizes sizes;
  sizes.vector = request.counts.count * elementSize;
  sizes.shared =
      sharedBytes(request.collective, ranks, request.counts, elementSize);
  sizes.unit = kLine % elementSize == 0 ? kLine : elementSize;
  sizes.chunk = std::min(slotBytes, parameters.chunkBytes) / kLine * kLine;
  sizes.whole = parameters.wholeBytes(request.collective, crowded, slotBytes);
  sizes.leastInPlace = parameters.leastInPlace(request.collective, ranks,
                                               sizes.whole, sizes.chunk);
  return sizes;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
