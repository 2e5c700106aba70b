// All algorithms, with what they need and what they promise: what selection
// chooses from, and what the verifier proves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/layout.h"
#include "algorithms/schedule.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Also the `operation` of check words: never renumber. At most 31.
enum class Collective : uint8_t {
  kAllreduce = 1,
  kReduce = 2,
  kBroadcast = 3,
  kBarrier = 4,
  kScatter = 5,
  kGather = 6,
  kGatherv = 7,
  kAllgather = 8,
  kAllgatherv = 9,
  kReduceScatter = 10,
  kReduceScatterv = 11,
  kAlltoall = 12,
  kAlltoallv = 13,
};
constexpr size_t kCollectiveNumbers = 14;  // 0 is none

std::string_view nameOf(Collective collective);
// Whether it combines elements of several ranks.
bool isReduction(Collective collective);
// Whether one rank has all of the input, or gets all of the output.
bool hasRoot(Collective collective);

// An algorithm's published cost: messages in the longest chain; what the
// busiest rank moves in one direction and reduces, as fractions of all bytes
// (of the vector, or of all ranks' blocks together; what is not a multiple of
// the number of blocks is rounded up); messages that a rank sends or receives
// one after the other (0: one per round); segments that pass before the last
// rank's first one does, where the whole vector flows through all ranks; what a
// rank copies to put blocks in order, as a fraction of all bytes; what it sends
// and receives together, if that is less than twice `moved` (0: it is not).
struct Work {
  double rounds = 0;
  double moved = 0;
  double reduced = 0;
  double messages = 0;
  double fill = 0;
  double copied = 0;
  double bothWays = 0;
  // What of the rounds, the bytes moved and the messages is inside hosts: where
  // the algorithm knows the hosts.
  double insideRounds = 0;
  double insideMoved = 0;
  double insideMessages = 0;
  // Of bothWays, what is sent less what is received: of one that sends more.
  double sentMore = 0;
};

struct AlgorithmInfo {
  Collective collective;
  uint8_t id;  // in check words: 1..63, never renumber
  std::string_view name;
  Schedule (*schedule)(const Setting& setting);
  // Blocks of the vector; null for collectives whose blocks are the ranks'.
  int (*blocks)(const Setting& setting);
  Work (*work)(const Setting& setting);
  // Null: every setting.
  bool (*supports)(const Setting& setting) = nullptr;
  // How often the scratch area has the blocks of the output; null: once. Only
  // where blocks are equal, or there is one.
  int (*scratchTimes)(const Setting& setting) = nullptr;
  // It runs where it is asked for by name, however cheap it is.
  bool byNameOnly = false;
  bool usesRadix = false;  // of the setting

  bool offers(const Setting& setting) const {
    return supports == nullptr || supports(setting);
  }
};

// All algorithms of all collectives; those of one are neighbours.
std::span<const AlgorithmInfo> catalogue();

std::span<const AlgorithmInfo> algorithmsOf(Collective collective);

// Null if there is none of that name.
const AlgorithmInfo* findAlgorithm(Collective collective,
                                   std::string_view name);

// In check words: by memory that all ranks have mapped, without a schedule
// (direct.h).
constexpr uint8_t kDirectId = 63;

// The algorithm of those that reduce which gives the bits that lanes give.
inline constexpr char kInOrder[] = "in_order";

// For check words: never throws.
std::string_view nameOfAlgorithm(uint8_t id);

// The size of a call, in elements. `count` where all blocks are equal: of the
// vector (allreduce, reduce, broadcast), else of each rank's block. The
// v-collectives use offsets (size + 1 of them) instead: `sendOffsets` for what
// this rank has to hand out, `recvOffsets` for what it collects.
struct Counts {
  size_t count = 0;
  const size_t* sendOffsets = nullptr;
  const size_t* recvOffsets = nullptr;
};

// Where the areas' blocks lie; borrows the offsets.
Layouts layoutsOf(const AlgorithmInfo& algorithm, const Setting& setting,
                  const Counts& counts);

// What a call moves in total (the vector, or all ranks' blocks together), for
// the cost model: from counts that all ranks know, so 0 where there are none
// (gatherv, alltoallv).
size_t sharedBytes(Collective collective, int size, const Counts& counts,
                   size_t elementSize);

}  // namespace algorithms
GLOO_NAMESPACE_END
