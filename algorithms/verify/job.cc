#include "algorithms/verify/verify.h"
#include "gloo/common/string.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {

Counts Job::countsOf(int rank) const {
  Counts result;
  result.count = count;
  if (!counts.empty()) {
    const RankCounts& own = counts[static_cast<size_t>(rank)];
    result.sendOffsets =
        own.sendOffsets.empty() ? nullptr : own.sendOffsets.data();
    result.recvOffsets =
        own.recvOffsets.empty() ? nullptr : own.recvOffsets.data();
  }
  return result;
}

Layouts Job::layouts(int rank) const {
  return layoutsOf(*algorithm, setting(rank), countsOf(rank));
}

ExpandOptions Job::optionsOf(int rank) const {
  ExpandOptions result = options;
  switch (algorithm->collective) {
    case Collective::kReduce:
      result.inPlace &= rank == root;
      break;
    case Collective::kGather:
    case Collective::kGatherv:
      result.inPlace &= rank == root;
      result.inPlaceOffset =
          layouts(rank).output.offset(rank) * options.elementSize;
      break;
    case Collective::kAllgather:
    case Collective::kAllgatherv:
      result.inPlaceOffset =
          layouts(rank).output.offset(rank) * options.elementSize;
      break;
    case Collective::kReduceScatter:
    case Collective::kReduceScatterv:
      result.outputOffset =
          layouts(rank).input.offset(rank) * options.elementSize;
      break;
    case Collective::kScatter:
    case Collective::kAlltoall:
    case Collective::kAlltoallv:
      result.inPlace = false;  // not offered
      break;
    default:
      break;
  }
  return result;
}

std::string Job::str() const {
  return MakeString(nameOf(algorithm->collective), " ", algorithm->name,
                    " size ", size, " root ", root, " radix ", radix, " count ",
                    count, counts.empty() ? "" : " (uneven)", " segment ",
                    options.segmentBytes, " strip ", options.stripBytes,
                    " window ", options.window, " stage ", options.stageBytes,
                    options.inPlace ? " in place" : "");
}

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
