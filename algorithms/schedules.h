// The algorithms: pure functions from a setting to this rank's schedule.
// catalogue.h lists them with what they promise.
#pragma once

#include "algorithms/schedule.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Input to output, for one rank alone.
Schedule copyAll(const Setting& setting);

// Exchange of whole vectors at distance 1, 2, 4, ...: fewest rounds.
// Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", IJHPCA 19(1), 2005, section 4.5. 1 block.
Schedule allreduceRecursiveDoubling(const Setting& setting);

// Reduce-scatter by vector halving and distance doubling, then allgather by
// the reverse. Rabenseifner, "Optimization of Collective Reduction
// Operations", ICCS 2004, section 4. As many blocks as the largest power of
// two that is not above the size.
Schedule allreduceHalvingDoubling(const Setting& setting);

// Reduce-scatter and allgather around a ring: fewest bytes for every size.
// Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 69(2), 2009, section 3. `size` blocks.
Schedule allreduceRing(const Setting& setting);

// As the ring, but in rounds of exchanges among `radix` ranks each (any
// factor of the size where the radix is none): BCube, Guo et al., "BCube: a
// high performance, server-centric network architecture for modular data
// centers", SIGCOMM 2009; the exchanges are the radix-r algorithm of Bruck, Ho,
// Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997. `size` blocks.
Schedule allreduceBcube(const Setting& setting);

// Rounds, and messages that a rank sends, of one half of it.
struct Exchanges {
  int rounds = 0;
  int messages = 0;
};
Exchanges bcubeExchanges(const Setting& setting);

// Each rank sends its vector to every other and reduces all of them itself: one
// round; memory for `size` vectors. The one-phase all-pairs algorithm of Shah
// et al., "MSCCL++: Rethinking GPU Communication Abstractions for AI
// Inference", arXiv 2504.09014, 2025. 1 block.
Schedule allreduceFlat(const Setting& setting);

// For operations that reduce and find no idle lane (docs/shm.md): along the
// chain of the ranks, as in lanes. A reduce-scatter by exchanges with rank 0,
// rank 1, ..., one after the other; then each rank sends its sum to the others
// (or to the root). No paper: it is what lanes do, in messages. `size` blocks.
Schedule allreduceInOrder(const Setting& setting);
Schedule reduceInOrder(const Setting& setting);
Schedule reduceScatterInOrder(const Setting& setting);

// Thakur et al. 2005, section 4.2 (short messages). 1 block.
Schedule broadcastBinomial(const Setting& setting);

// A binomial scatter and a ring allgather: van de Geijn's algorithm, Thakur et
// al. 2005, section 4.2 (long messages). `size` blocks.
Schedule broadcastScatterAllgather(const Setting& setting);

// A pipeline of segments from rank to rank: Pjesivac-Grbovic, Angskun, Bosilca,
// Fagg, Gabriel, Dongarra, "Performance analysis of MPI collective operations",
// Cluster Computing 10(2), 2007 (pipeline broadcast). 1 block.
Schedule broadcastChain(const Setting& setting);

// Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization",
// IJPP 17(1), 1988, section 3. 1 block.
Schedule barrierDissemination(const Setting& setting);

// Thakur et al. 2005, section 4.5 (short messages). 1 block.
Schedule reduceBinomial(const Setting& setting);

// Reduce-scatter as in allreduceHalvingDoubling, then a binomial gather.
// Rabenseifner 2004, section 4; Thakur et al. 2005, section 4.5 (long
// messages). As many blocks as allreduceHalvingDoubling.
Schedule reduceRabenseifner(const Setting& setting);

// The first half of allreduceRing, ending at the block's own rank.
Schedule reduceScatterRing(const Setting& setting);

// Thakur et al. 2005, section 4.4 (commutative, short messages).
Schedule reduceScatterHalving(const Setting& setting);

// Thakur et al. 2005, section 4.4 (long messages).
Schedule reduceScatterPairwise(const Setting& setting);

// The second half of allreduceRing.
Schedule allgatherRing(const Setting& setting);

// Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", IEEE TPDS 8(11), 1997,
// section 4 (concatenation).
// Of few ranks each message is one block, which is received where it belongs;
// of more, some would wrap around.
constexpr bool bruckWraps(int ranks) { return ranks > 3; }
Schedule allgatherBruck(const Setting& setting);
Schedule allgathervBruck(const Setting& setting);

// Thakur et al. 2005, section 4.1. Powers of two.
Schedule allgatherRecursiveDoubling(const Setting& setting);

// Chen, Zhang, Zhang, Yuan, "Performance evaluation of allgather algorithms on
// terascale Linux cluster with fast Ethernet", HPC Asia 2005 (neighbor
// exchange). Even sizes.
Schedule allgatherNeighbourExchange(const Setting& setting);

// One message between the root and each rank. (Every scatter reads its input
// one block at a time: the caller's blocks may lie anywhere.)
Schedule gatherFlat(const Setting& setting);
Schedule scatterFlat(const Setting& setting);

// Along a binomial tree. Chan, Heimlich, Purkayastha, van de Geijn, "Collective
// communication: theory, practice, and experience", CCPE 19(13), 2007 (minimum
// spanning tree gather and scatter).
Schedule gatherBinomial(const Setting& setting);
Schedule scatterBinomial(const Setting& setting);

// Thakur et al. 2005, section 4.3 (long messages).
Schedule alltoallPairwise(const Setting& setting);

// Bruck et al. 1997, section 3 (index); Thakur et al. 2005, section 4.3 (short
// messages).
Schedule alltoallBruck(const Setting& setting);

// ---- For several hosts with several ranks each: setting.hosts is not null.
// docs/hierarchy.md has the picture. ----
//
// Reduce-scatter inside each host, allreduce of each lane among the hosts,
// allgather inside: Jia et al., "Highly Scalable Deep Learning Training System
// with Mixed-Precision: Training ImageNet in Four Minutes", arXiv 1807.11205,
// 2018, section 4.2, with several ranks per host in the exchange: Cho et al.,
// "BlueConnect", IBM Journal of R&D 63(6), 2019. Among hosts a ring: `hosts *
// lanes` blocks; or recursive doubling: `lanes` blocks.
Schedule allreduceHierarchicalRing(const Setting& setting);
Schedule allreduceHierarchicalDoubling(const Setting& setting);

// The same idea: the vector is cut into lanes inside the root's host, each lane
// goes along a binomial tree of hosts, and every host puts them together; the
// other way round for reduce. `lanes` blocks. Karonis et al., "Exploiting
// hierarchy in parallel computer networks to optimize collective operation
// performance", IPDPS 2000.
Schedule broadcastHierarchical(const Setting& setting);
Schedule reduceHierarchical(const Setting& setting);

// One rank per host, as in barrierDissemination. 1 block.
Schedule barrierHierarchical(const Setting& setting);

// Each block goes to each other host once, by all ranks at the same time, and
// is then shared inside the host; the other way round for reduce_scatter.
// Traff, "Efficient allgather for regular SMP-clusters", EuroPVM/MPI 2006.
Schedule allgatherHierarchical(const Setting& setting);
Schedule reduceScatterHierarchical(const Setting& setting);

}  // namespace algorithms
GLOO_NAMESPACE_END
