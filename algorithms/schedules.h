// The algorithms: pure functions from a setting to this rank's schedule.
// catalogue.h lists them with what they promise, docs/algorithms.md says where
// each comes from.
#pragma once

#include "algorithms/schedule.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Input to output, for one rank alone.
Schedule copyAll(const Setting& setting);

// Exchange of whole vectors at distance 1, 2, 4, ...: fewest rounds. 1 block.
Schedule allreduceRecursiveDoubling(const Setting& setting);

// Reduce-scatter by vector halving and distance doubling, then allgather by
// the reverse. As many blocks as the largest power of two that is not above the
// size.
Schedule allreduceHalvingDoubling(const Setting& setting);

// Reduce-scatter and allgather around a ring: fewest bytes for every size.
// `size` blocks.
Schedule allreduceRing(const Setting& setting);

// As the ring, but in rounds of exchanges among `radix` ranks each (any
// factor of the size where the radix is none). `size` blocks.
Schedule allreduceBcube(const Setting& setting);

// Rounds, and messages that a rank sends, of one half of it.
struct Exchanges {
  int rounds = 0;
  int messages = 0;
};
Exchanges bcubeExchanges(const Setting& setting);

// Each rank sends its vector to every other and reduces all of them itself: one
// round; memory for `size` vectors. 1 block.
Schedule allreduceFlat(const Setting& setting);

// For operations that reduce and find no idle lane (docs/shm.md): along the
// chain of the ranks, as in lanes. A reduce-scatter by exchanges with rank 0,
// rank 1, ..., one after the other; then each rank sends its sum to the others
// (or to the root). `size` blocks.
Schedule allreduceInOrder(const Setting& setting);
Schedule reduceInOrder(const Setting& setting);
Schedule reduceScatterInOrder(const Setting& setting);

// 1 block.
Schedule broadcastBinomial(const Setting& setting);

// A binomial scatter and a ring allgather. `size` blocks.
Schedule broadcastScatterAllgather(const Setting& setting);

// A pipeline of segments from rank to rank. 1 block.
Schedule broadcastChain(const Setting& setting);

// 1 block.
Schedule barrierDissemination(const Setting& setting);

// 1 block.
Schedule reduceBinomial(const Setting& setting);

// Reduce-scatter as in allreduceHalvingDoubling, then a binomial gather. As
// many blocks as allreduceHalvingDoubling.
Schedule reduceRabenseifner(const Setting& setting);

// The first half of allreduceRing, ending at the block's own rank.
Schedule reduceScatterRing(const Setting& setting);

// For short messages.
Schedule reduceScatterHalving(const Setting& setting);

// For long messages.
Schedule reduceScatterPairwise(const Setting& setting);

// The second half of allreduceRing.
Schedule allgatherRing(const Setting& setting);

// Bruck's concatenation. Of few ranks each message is one block, which is
// received where it belongs; of more, some would wrap around.
constexpr bool bruckWraps(int ranks) { return ranks > 3; }
Schedule allgatherBruck(const Setting& setting);
Schedule allgathervBruck(const Setting& setting);

// Powers of two.
Schedule allgatherRecursiveDoubling(const Setting& setting);

// Even sizes.
Schedule allgatherNeighbourExchange(const Setting& setting);

// One message between the root and each rank. (Every scatter reads its input
// one block at a time: the caller's blocks may lie anywhere.)
Schedule gatherFlat(const Setting& setting);
Schedule scatterFlat(const Setting& setting);

// Along a binomial tree.
Schedule gatherBinomial(const Setting& setting);
Schedule scatterBinomial(const Setting& setting);

// For long messages.
Schedule alltoallPairwise(const Setting& setting);

// Bruck's index operation, for short messages.
Schedule alltoallBruck(const Setting& setting);

// ---- For several hosts with several ranks each: setting.hosts is not null.
// docs/hierarchy.md has the picture. ----
//
// Reduce-scatter inside each host, allreduce of each lane among the hosts,
// allgather inside. Among hosts a ring: `hosts * lanes` blocks; or recursive
// doubling: `lanes` blocks.
Schedule allreduceHierarchicalRing(const Setting& setting);
Schedule allreduceHierarchicalDoubling(const Setting& setting);

// The same idea: the vector is cut into lanes inside the root's host, each lane
// goes along a binomial tree of hosts, and every host puts them together; the
// other way round for reduce. `lanes` blocks.
Schedule broadcastHierarchical(const Setting& setting);
Schedule reduceHierarchical(const Setting& setting);

// One rank per host, as in barrierDissemination. 1 block.
Schedule barrierHierarchical(const Setting& setting);

// Each block goes to each other host once, by all ranks at the same time, and
// is then shared inside the host; the other way round for reduce_scatter.
Schedule allgatherHierarchical(const Setting& setting);
Schedule reduceScatterHierarchical(const Setting& setting);

}  // namespace algorithms
GLOO_NAMESPACE_END
