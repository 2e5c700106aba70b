// Jobs for the verifier.
#pragma once

#include <array>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "algorithms/hosts.h"
#include "algorithms/verify/verify.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {

inline int rootsOf(const AlgorithmInfo& info, int size) {
  switch (info.collective) {
    case Collective::kReduce:
    case Collective::kBroadcast:
    case Collective::kScatter:
    case Collective::kGather:
    case Collective::kGatherv:
      return size;
    default:
      return 1;
  }
}

inline bool isUneven(Collective collective) {
  switch (collective) {
    case Collective::kGatherv:
    case Collective::kAllgatherv:
    case Collective::kReduceScatterv:
    case Collective::kAlltoallv:
      return true;
    default:
      return false;
  }
}

// What needs several hosts; proven in hierarchy_test.cc.
inline bool isHierarchical(const AlgorithmInfo& info) {
  return info.name.starts_with("hierarchical");
}

// Offsets of `size` counts of least..3, the same for the same seed.
inline std::vector<size_t> unevenOffsets(int size, unsigned seed,
                                         size_t least = 0) {
  std::mt19937 random(seed);
  std::vector<size_t> offsets{0};
  for (int i = 0; i < size; i++) {
    offsets.push_back(offsets.back() + least + random() % (4 - least));
  }
  return offsets;
}

inline std::vector<RankCounts> unevenCounts(Collective collective, int size,
                                            size_t least = 0) {
  std::vector<RankCounts> counts(static_cast<size_t>(size));
  if (collective != Collective::kAlltoallv) {
    for (RankCounts& c : counts) {
      c.sendOffsets = c.recvOffsets = unevenOffsets(size, 7, least);
    }
    return counts;
  }
  for (int from = 0; from < size; from++) {
    counts[from].sendOffsets =
        unevenOffsets(size, static_cast<unsigned>(from), least);
  }
  for (int to = 0; to < size; to++) {
    auto& recv = counts[to].recvOffsets;
    recv.push_back(0);
    for (int from = 0; from < size; from++) {
      const auto& sent = counts[from].sendOffsets;
      recv.push_back(recv.back() + sent[to + 1] - sent[to]);
    }
  }
  return counts;
}

inline bool hasVector(Collective collective) {
  return collective == Collective::kAllreduce ||
         collective == Collective::kReduce ||
         collective == Collective::kBroadcast ||
         collective == Collective::kBarrier;
}

inline void fitCollective(Job& job) {
  if (job.algorithm->collective == Collective::kBarrier) {
    job.count = 1;
  }
  if (isUneven(job.algorithm->collective)) {
    job.counts = unevenCounts(job.algorithm->collective, job.size);
  }
}

// Beyond those for which everything is proven, with the variants to try; what
// it costs is computed in variant 0.
struct LargeSize {
  int size;
  std::vector<int> variants;
};
inline const LargeSize kLargeSizes[] = {{96, {3}},
                                        {127, {0, 1, 2, 3, 4}},
                                        {128, {0, 1, 2, 3, 4}},
                                        {255, {1, 4}},
                                        {256, {2}},
                                        {1000, {1}},
                                        {1024, {4}}};

// Whether there is time for these variants. From 1000 ranks on, algorithms take
// turns, and Bruck's alltoall, which packs its blocks, has 30 million actions.
inline bool isTried(const AlgorithmInfo& info, int size) {
  if (size < 1000) {
    return true;
  }
  const bool packs =
      info.collective == Collective::kAlltoall && info.name == "bruck";
  return !packs && (size == 1000) == (info.id % 2 == 0);
}

inline std::set<int> rootsToTry(const AlgorithmInfo& info, int size) {
  if (rootsOf(info, size) == 1) {
    return {0};
  }
  return size >= 1000 ? std::set<int>{size / 3}
                      : std::set<int>{0, size / 3, size - 1};
}

// The last host may have fewer.
inline HostMap threePerHost(int size) {
  std::vector<int> hostOfRank;
  for (int rank = 0; rank < size; rank++) {
    hostOfRank.push_back(rank / 3);
  }
  return HostMap(hostOfRank);
}

// Segmentations, windows, stages and sizes that a job can have.
constexpr int kVariants = 5;

inline Job makeJob(const AlgorithmInfo& info, int size, int root, int variant,
                   const HostMap* hosts = nullptr) {
  Job job;
  job.hosts = hosts;
  job.algorithm = &info;
  job.size = size;
  job.root = root;
  const bool vector = hasVector(info.collective);
  const size_t n =
      vector ? static_cast<size_t>(info.blocks(job.setting(0))) : 0;
  job.options.elementSize = 1;
  job.radix = std::array{2, 3, 4, 16, 5}[static_cast<size_t>(variant)];
  switch (variant) {
    case 0:  // no segments, one element per block
      job.count = vector ? n : 1;
      job.options.segmentBytes = 1 << 20;
      break;
    case 1:  // some blocks are empty; in place
      job.count = vector ? n / 2 + 1 : 2;
      job.options.segmentBytes = 1;
      job.options.inPlace = true;
      break;
    case 2:  // many segments, smallest window
      job.count = vector ? 3 * n + 1 : 3;
      job.options.segmentBytes = 1;
      job.options.window = 4;
      job.options.stageBytes = 1;
      break;
    case 3:  // few segments
      job.count = vector ? 5 * n + 2 : 5;
      job.options.segmentBytes = 2;
      job.options.stripBytes = vector ? 2 * n + 1 : 0;
      job.options.window = 9;
      job.options.stageBytes = 256;
      break;
    default:  // in place, other window
      job.count = vector ? 2 * n + 1 : 3;
      job.options.segmentBytes = 2;
      job.options.stripBytes = vector ? n + 1 : 0;
      job.options.window = 6;
      job.options.inPlace = true;
  }
  fitCollective(job);
  return job;
}

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
