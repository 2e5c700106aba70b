#include "algorithms/catalogue.h"

#include "algorithms/hosts.h"
#include "algorithms/schedules.h"
#include "algorithms/work.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

int oneBlock(const Setting&) { return 1; }
int blockPerRank(const Setting& s) { return s.size; }
int twice(const Setting&) { return 2; }
int powerOfTwoBlocks(const Setting& s) { return floorPowerOfTwo(s.size); }

int lanes(const Setting& s) {
  return s.hosts != nullptr ? s.hosts->lanes() : 1;
}
int lanesTimesHosts(const Setting& s) {
  return s.hosts != nullptr ? s.hosts->lanes() * s.hosts->hosts() : 1;
}

// Elsewhere the hierarchical algorithms are others under another name.
bool isMixed(const Setting& s) {
  return s.hosts != nullptr && s.hosts->isMixed();
}

bool isPowerOfTwo(const Setting& s) {
  return s.size == floorPowerOfTwo(s.size);
}
bool isEven(const Setting& s) { return s.size % 2 == 0; }

using enum Collective;

constexpr AlgorithmInfo kCatalogue[] = {
    {kAllreduce, 1, "recursive_doubling", allreduceRecursiveDoubling, oneBlock,
     work::recursiveDoubling},
    {kAllreduce, 2, "halving_doubling", allreduceHalvingDoubling,
     powerOfTwoBlocks, work::halvingDoubling},
    {kAllreduce, 3, "ring", allreduceRing, blockPerRank, work::allreduceRing},
    {kAllreduce, 4, "bcube", allreduceBcube, blockPerRank, work::bcube, nullptr,
     nullptr, false, true},
    {kAllreduce, 5, "flat", allreduceFlat, oneBlock, work::flatAllreduce,
     nullptr, blockPerRank},
    {kAllreduce, 6, "hierarchical_ring", allreduceHierarchicalRing,
     lanesTimesHosts, work::hierarchicalRing, isMixed},
    {kAllreduce, 7, "hierarchical_doubling", allreduceHierarchicalDoubling,
     lanes, work::hierarchicalDoubling, isMixed},
    {kAllreduce, 14, kInOrder, allreduceInOrder, blockPerRank,
     work::gatheredInOrder, nullptr, nullptr, true},
    {kBroadcast, 8, "binomial", broadcastBinomial, oneBlock, work::binomial},
    {kBroadcast, 9, "scatter_allgather", broadcastScatterAllgather,
     blockPerRank, work::scatterAllgather},
    {kBroadcast, 10, "chain", broadcastChain, oneBlock, work::chain},
    {kBroadcast, 11, "hierarchical", broadcastHierarchical, lanes,
     work::hierarchicalBroadcast, isMixed},
    {kBarrier, 12, "dissemination", barrierDissemination, oneBlock,
     work::dissemination},
    {kBarrier, 13, "hierarchical", barrierHierarchical, oneBlock,
     work::hierarchicalBarrier, isMixed},
    {kReduce, 16, "binomial", reduceBinomial, oneBlock, work::binomialReduce},
    {kReduce, 17, "rabenseifner", reduceRabenseifner, powerOfTwoBlocks,
     work::rabenseifnerReduce},
    {kReduce, 18, "hierarchical", reduceHierarchical, lanes,
     work::hierarchicalReduce, isMixed},
    {kReduce, 19, kInOrder, reduceInOrder, blockPerRank, work::collectedInOrder,
     nullptr, nullptr, true},
    {kScatter, 20, "flat", scatterFlat, nullptr, work::directRooted},
    {kScatter, 21, "binomial", scatterBinomial, nullptr, work::binomialGather},
    {kGather, 24, "flat", gatherFlat, nullptr, work::directRooted},
    {kGather, 25, "binomial", gatherBinomial, nullptr, work::binomialGather},
    {kGatherv, 26, "flat", gatherFlat, nullptr, work::directRooted},
    // Of equally cheap ones selection takes the first: Bruck's copies the
    // result.
    {kAllgather, 30, "recursive_doubling", allgatherRecursiveDoubling, nullptr,
     work::allgatherDoubling, isPowerOfTwo},
    {kAllgather, 31, "neighbour_exchange", allgatherNeighbourExchange, nullptr,
     work::neighbourExchange, isEven},
    {kAllgather, 28, "ring", allgatherRing, nullptr, work::allgatherRing},
    {kAllgather, 29, "bruck", allgatherBruck, nullptr, work::allgatherBruck},
    {kAllgather, 32, "hierarchical", allgatherHierarchical, nullptr,
     work::hierarchicalAllgather, isMixed},
    {kAllgatherv, 36, "recursive_doubling", allgatherRecursiveDoubling, nullptr,
     work::allgatherDoubling, isPowerOfTwo},
    {kAllgatherv, 37, "neighbour_exchange", allgatherNeighbourExchange, nullptr,
     work::neighbourExchange, isEven},
    {kAllgatherv, 34, "ring", allgatherRing, nullptr, work::allgatherRing},
    {kAllgatherv, 35, "bruck", allgathervBruck, nullptr, work::unevenBruck},
    {kAllgatherv, 38, "hierarchical", allgatherHierarchical, nullptr,
     work::hierarchicalAllgather, isMixed},
    {kReduceScatter, 40, "ring", reduceScatterRing, nullptr,
     work::reduceScatterRing},
    {kReduceScatter, 41, "recursive_halving", reduceScatterHalving, nullptr,
     work::recursiveHalving},
    {kReduceScatter, 42, "pairwise", reduceScatterPairwise, nullptr,
     work::directReduce},
    {kReduceScatter, 43, "hierarchical", reduceScatterHierarchical, nullptr,
     work::hierarchicalReduceScatter, isMixed},
    {kReduceScatter, 54, kInOrder, reduceScatterInOrder, nullptr,
     work::scatteredInOrder, nullptr, nullptr, true},
    {kReduceScatterv, 44, "ring", reduceScatterRing, nullptr,
     work::reduceScatterRing},
    {kReduceScatterv, 45, "recursive_halving", reduceScatterHalving, nullptr,
     work::recursiveHalving},
    {kReduceScatterv, 46, "pairwise", reduceScatterPairwise, nullptr,
     work::directReduce},
    {kReduceScatterv, 47, "hierarchical", reduceScatterHierarchical, nullptr,
     work::hierarchicalReduceScatter, isMixed},
    {kReduceScatterv, 55, kInOrder, reduceScatterInOrder, nullptr,
     work::scatteredInOrder, nullptr, nullptr, true},
    {kAlltoall, 48, "pairwise", alltoallPairwise, nullptr, work::direct},
    {kAlltoall, 49, "bruck", alltoallBruck, nullptr, work::alltoallBruck,
     nullptr, twice},
    {kAlltoallv, 52, "pairwise", alltoallPairwise, nullptr, work::direct},
};

}  // namespace

bool isReduction(Collective collective) {
  switch (collective) {
    case Collective::kAllreduce:
    case Collective::kReduce:
    case Collective::kReduceScatter:
    case Collective::kReduceScatterv:
      return true;
    default:
      return false;
  }
}

bool hasRoot(Collective collective) {
  switch (collective) {
    case Collective::kReduce:
    case Collective::kBroadcast:
    case Collective::kScatter:
    case Collective::kGather:
    case Collective::kGatherv:
      return true;
    default:
      return false;
  }
}

std::string_view nameOf(Collective collective) {
  switch (collective) {
    case Collective::kAllreduce:
      return "allreduce";
    case Collective::kReduce:
      return "reduce";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kBarrier:
      return "barrier";
    case Collective::kScatter:
      return "scatter";
    case Collective::kGather:
      return "gather";
    case Collective::kGatherv:
      return "gatherv";
    case Collective::kAllgather:
      return "allgather";
    case Collective::kAllgatherv:
      return "allgatherv";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kReduceScatterv:
      return "reduce_scatterv";
    case Collective::kAlltoall:
      return "alltoall";
    case Collective::kAlltoallv:
      return "alltoallv";
  }
  return "unknown operation";
}

std::span<const AlgorithmInfo> catalogue() { return kCatalogue; }

std::span<const AlgorithmInfo> algorithmsOf(Collective collective) {
  const auto all = catalogue();
  size_t begin = 0;
  while (begin < all.size() && all[begin].collective != collective) {
    begin++;
  }
  size_t end = begin;
  while (end < all.size() && all[end].collective == collective) {
    end++;
  }
  return all.subspan(begin, end - begin);
}

const AlgorithmInfo* findAlgorithm(Collective collective,
                                   std::string_view name) {
  for (const AlgorithmInfo& info : algorithmsOf(collective)) {
    if (info.name == name) {
      return &info;
    }
  }
  return nullptr;
}

std::string_view nameOfAlgorithm(uint8_t id) {
  for (const AlgorithmInfo& info : catalogue()) {
    if (info.id == id) {
      return info.name;
    }
  }
  return id == kDirectId ? "direct" : "unknown";
}

Layouts layoutsOf(const AlgorithmInfo& algorithm, const Setting& s,
                  const Counts& c) {
  const size_t ranks = static_cast<size_t>(s.size);
  const auto perRank = [&](const size_t* offsets) {
    return offsets != nullptr ? Layout{offsets[ranks], s.size, offsets}
                              : Layout{c.count * ranks, s.size, nullptr};
  };
  const auto own = [&](const size_t* offsets) {
    return offsets != nullptr
               ? Layout{offsets[s.rank + 1] - offsets[s.rank], 1, nullptr}
               : Layout{c.count, 1, nullptr};
  };
  const auto scratch = [&](const Layout& layout) {
    const int times =
        algorithm.scratchTimes != nullptr ? algorithm.scratchTimes(s) : 1;
    return times == 1 ? layout
                      : Layout{layout.elements * static_cast<size_t>(times),
                               layout.blocks * times, nullptr};
  };
  switch (algorithm.collective) {
    case Collective::kAllreduce:
    case Collective::kReduce:
    case Collective::kBroadcast:
    case Collective::kBarrier: {
      const Layout vector{c.count, algorithm.blocks(s), nullptr};
      return {vector, vector, scratch(vector)};
    }
    case Collective::kScatter:
    case Collective::kReduceScatter:
    case Collective::kReduceScatterv: {
      const Layout all = perRank(c.sendOffsets);
      return {all, own(c.sendOffsets), all};
    }
    case Collective::kGather:
    case Collective::kGatherv:
    case Collective::kAllgather:
    case Collective::kAllgatherv: {
      const Layout all = perRank(c.recvOffsets);
      return {own(c.recvOffsets), all, all};
    }
    case Collective::kAlltoall:
    case Collective::kAlltoallv:
      break;
  }
  const Layout out = perRank(c.recvOffsets);
  return {perRank(c.sendOffsets), out, scratch(out)};
}

size_t sharedBytes(Collective collective, int size, const Counts& counts,
                   size_t elementSize) {
  const size_t ranks = static_cast<size_t>(size);
  switch (collective) {
    case Collective::kAllreduce:
    case Collective::kReduce:
    case Collective::kBroadcast:
    case Collective::kBarrier:
      return counts.count * elementSize;
    case Collective::kAllgatherv:
      return counts.recvOffsets[ranks] * elementSize;
    case Collective::kReduceScatterv:
      return counts.sendOffsets[ranks] * elementSize;
    case Collective::kGatherv:
    case Collective::kAlltoallv:
      return 0;
    default:
      return counts.count * ranks * elementSize;
  }
}

}  // namespace algorithms

GLOO_NAMESPACE_END
