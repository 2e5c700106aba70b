#include "tools/gloo_simulate/descriptions.h"

namespace gloo_simulate {
namespace {

using gloo::algorithms::AlgorithmInfo;
using gloo::algorithms::Collective;
using enum gloo::algorithms::Collective;

constexpr std::string_view kFolding =
    "Rabenseifner, \"Optimization of Collective Reduction Operations\", ICCS "
    "2004, recursive vector halving and distance doubling";

// Where no section is named, it is the paper's own name of the algorithm or of
// the part that has it.
constexpr std::string_view kBarrierOfHosts =
    "Kielmann et al., \"MagPIe: MPI's collective communication operations for "
    "clustered wide area systems\", PPoPP 1999, barrier";

constexpr Description kDescriptions[] = {
    {kAllreduce, "recursive_doubling",
     "In round k each rank exchanges its whole vector with the one whose "
     "number "
     "differs in bit k, and both reduce. Where n is no power of two, one rank "
     "of "
     "each of the first pairs hands its vector over before and gets the result "
     "after.",
     "log2 n rounds (2 more if folded), log2 n m moved and reduced",
     "small vectors", "Thakur et al. 2005 (see reduce), section 4.5"},
    {kAllreduce, "halving_doubling",
     "A reduce-scatter in which the part that two ranks exchange halves with "
     "every round, then an allgather that goes back the same way. Few rounds "
     "and few bytes; for other numbers than powers of two ranks are folded as "
     "in recursive doubling.",
     "2 log2 n rounds, 2 (n - 1) / n m moved, (n - 1) / n m reduced (folded: 2 "
     "rounds and m more)",
     "large vectors, where n is a power of two", kFolding},
    {kAllreduce, "ring",
     "Each block travels around the ring twice: first it collects all "
     "contributions, then the result goes to everybody. Fewest bytes for every "
     "n, but a message's latency 2 (n - 1) times.",
     "2 (n - 1) rounds, 2 (n - 1) / n m moved, (n - 1) / n m reduced",
     "some large vectors of hosts with several ranks each, whose neighbours it "
     "mostly finds inside, and of 4 ranks over RDMA; else others take fewer "
     "rounds",
     "Patarasuk, Yuan, \"Bandwidth optimal all-reduce algorithms for clusters "
     "of workstations\", JPDC 69(2), 2009, section 3 (ring)",
     5},
    {kAllreduce, "bcube",
     "As the ring, but in rounds of exchanges among as many ranks as the radix "
     "says (any factor of n where the radix is none): for radix 2 and powers "
     "of "
     "two the halving and doubling.",
     "2 log_r n rounds, 2 (n - 1) / n m moved, (n - 1) / n m reduced",
     "large vectors, where n is no power of two",
     "Guo et al., \"BCube: a high performance, server-centric network "
     "architecture for modular data centers\", SIGCOMM 2009 (the BCube "
     "structure); Bruck, Ho, Kipnis, Upfal, Weathersby, \"Efficient algorithms "
     "for all-to-all communications in multiport message-passing systems\", "
     "IEEE TPDS 8(11), 1997, section 3 (radix r)",
     6},
    {kAllreduce, "flat",
     "Each rank sends its vector to every other and reduces all of them "
     "itself. "
     "One latency, if messages may overlap; memory for n vectors.",
     "1 round of n - 1 messages, (n - 1) m moved and reduced",
     "the smallest vectors of few ranks",
     "Shah et al., \"MSCCL++: Rethinking GPU Communication Abstractions for "
     "Cutting-Edge AI Applications\", arXiv 2504.09014, 2025, one-phase "
     "all-pairs",
     4},
    {kAllreduce, "in_order",
     "Each rank exchanges blocks with rank 0, then with rank 1, and so on, and "
     "reduces what it gets: along the chain ((0 + 1) + 2) + ..., as lanes of "
     "shared memory do. Then each sends its sum to all others.",
     "2 rounds, 3 n - 4 messages one after the other, 2 (n - 1) / n m moved, "
     "(n - 1) / n m reduced",
     "only where an operation that might run in a lane finds none (shm.md): it "
     "gives the bits of those that do",
     "none: made for that", 4},
    {kBroadcast, "binomial",
     "Whoever has the vector sends it on, so that the number of those who have "
     "it doubles with every round.",
     "log2 n rounds, log2 n m moved", "small vectors",
     "Thakur et al. 2005 (see reduce), section 4.2"},
    {kBroadcast, "scatter_allgather",
     "The root scatters the blocks along a binomial tree; then they go around "
     "a "
     "ring, but for those that the next rank had from the scatter.",
     "log2 n + n - 1 rounds, 2 (n - 1) / n m moved",
     "some vectors from 256 KiB to 64 MiB, between those of the binomial tree "
     "and those of the chain (3 hosts of one rank: all above), and some of few "
     "bytes where many ranks share a core",
     "van de Geijn's algorithm: Thakur et al. 2005 (see reduce), section 4.2; "
     "Zhou et al., \"A Bandwidth-saving Optimization for MPI Broadcast "
     "Collective Operation\", ICPPW 2015, arXiv 1603.06809",
     6},
    {kBroadcast, "chain",
     "Segments flow from rank to rank. Once the pipeline is full, every link "
     "is "
     "busy all the time.",
     "n - 1 rounds, m moved and n - 2 segments to fill the pipeline",
     "large vectors: the segments are then long enough to hide their overhead "
     "and short enough to fill the pipeline soon",
     "Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra, "
     "\"Performance analysis of MPI collective operations\", Cluster Computing "
     "10(2), 2007, pipeline broadcast",
     5, 4},
    {kBarrier, "dissemination",
     "In round k each rank tells the one 2^k above that it is there, and all "
     "it "
     "has heard of.",
     "log2 n rounds of a byte",
     "always, but for most jobs of several hosts with several ranks each",
     "Hensgen, Finkel, Manber, \"Two algorithms for barrier synchronization\", "
     "IJPP 17(1), 1988, dissemination"},
    {kReduce, "binomial",
     "Along a binomial tree towards the root: in each round half of the ranks "
     "that are left hand their sum over.",
     "log2 n rounds, log2 n m moved and reduced", "small vectors",
     "Thakur, Rabenseifner, Gropp, \"Optimization of Collective Communication "
     "Operations in MPICH\", IJHPCA 19(1), 2005, section 4.5"},
    {kReduce, "rabenseifner",
     "The reduce-scatter of the allreduce by halving and doubling; then the "
     "blocks go to the root along a binomial tree.",
     "2 log2 n rounds, 2 (n - 1) / n m moved, (n - 1) / n m reduced (folded: a "
     "round and up to m more)",
     "large vectors", kFolding},
    {kReduce, "in_order",
     "As allreduce in order, but the root collects the sums.",
     "2 rounds, 2 n - 1 messages one after the other and the root's number, "
     "2 (n - 1) / n m moved, (n - 1) / n m reduced",
     "as allreduce in order", "none: made for that", 4},
    {kScatter, "flat", "The root sends each rank its block.",
     "1 round of n - 1 messages, (n - 1) / n m moved",
     "large blocks: no rank passes on what is not its own",
     "none: one message per rank", 6},
    {kScatter, "binomial",
     "Along a binomial tree: whoever has the blocks of a subtree sends on "
     "those "
     "of its halves.",
     "log2 n rounds, (n - 1) / n m moved", "small blocks",
     "Chan, Heimlich, Purkayastha, van de Geijn, \"Collective communication: "
     "theory, practice, and experience\", CCPE 19(13), 2007, minimum-spanning "
     "tree scatter"},
    {kGather, "flat", "Each rank sends its block to the root.",
     "1 round of n - 1 messages, (n - 1) / n m moved",
     "large blocks: no rank passes on what is not its own",
     "none: one message per rank", 6},
    {kGather, "binomial",
     "Along a binomial tree: each rank collects the blocks of its subtree and "
     "sends them on together.",
     "log2 n rounds, (n - 1) / n m moved", "small blocks",
     "Chan et al. 2007 (see scatter), minimum-spanning tree gather"},
    {kGatherv, "flat",
     "Each rank sends its block to the root: only the root knows how long all "
     "of them are.",
     "1 round of n - 1 messages, (n - 1) / n m moved", "always",
     "none: one message per rank", 6},
    {kAllgather, "ring", "Each block goes around the ring once.",
     "n - 1 rounds, (n - 1) / n m moved",
     "large blocks, for odd n and where ranks share hosts or cores",
     "the second half of the allreduce by ring", 5},
    {kAllgather, "bruck",
     "In round k each rank sends all it has, at most n - 2^k blocks, to the "
     "one "
     "2^k below. Blocks lie relative to the rank and are put in order at the "
     "end; those of at most 3 ranks are received where they belong.",
     "ceil(log2 n) rounds, (n - 1) / n m moved, and from 4 ranks on a copy of "
     "all. Where n is at most one and a half times the power of two below it "
     "(3, 5, 6, 9 to 12, ...) the cost model counts a round less: the last one "
     "sends nothing that comes in the one before, and does not wait for it",
     "small blocks, where n is no power of two",
     "Bruck et al. 1997 (see bcube), section 4 (concatenation)", 6},
    {kAllgather, "recursive_doubling",
     "In round k each rank exchanges the 2^k blocks that it has with the rank "
     "whose number differs in bit k. Powers of two only.",
     "log2 n rounds, (n - 1) / n m moved",
     "powers of two: all sizes, but only small blocks where several hosts have "
     "several ranks each, and not the largest where many share a core",
     "Thakur et al. 2005 (see reduce), section 4.1"},
    {kAllgather, "neighbour_exchange",
     "Pairs of blocks move away from where they began, in both directions, by "
     "exchanges with the two neighbours in turn. Even n only.",
     "n / 2 rounds, (n - 1) / n m moved",
     "large blocks, and all of few ranks, for even n that are no power of two",
     "Chen, Zhang, Zhang, Yuan, \"Performance evaluation of allgather "
     "algorithms on terascale Linux cluster with fast Ethernet\", HPC Asia "
     "2005, neighbor exchange",
     6},
    {kAllgatherv, "ring", "As allgather by ring, with blocks of any sizes.",
     "as allgather by ring, for even blocks",
     "some large blocks where ranks share hosts or cores; else others take "
     "fewer rounds",
     "as allgather by ring", 5},
    {kAllgatherv, "bruck",
     "As allgather by bruck, but blocks are received where they belong, in two "
     "messages where they wrap around.",
     "as allgather by bruck, without the copy",
     "no power of two: all sizes, but only small blocks where several hosts "
     "have several ranks each, and not all where ranks share cores",
     "as allgather by bruck", 6},
    {kAllgatherv, "recursive_doubling",
     "As allgather by recursive doubling, with blocks of any sizes.",
     "as allgather by recursive doubling, for even blocks",
     "as allgather by recursive doubling",
     "as allgather by recursive doubling"},
    {kAllgatherv, "neighbour_exchange",
     "As allgather by neighbour exchange, with blocks of any sizes.",
     "as allgather by neighbour exchange, for even blocks",
     "some blocks of even n, of 6 ranks most often, where ranks share hosts or "
     "cores; else others take fewer rounds",
     "as allgather by neighbour exchange", 6},
    {kReduceScatter, "ring",
     "Each block goes around the ring once, collects all contributions and "
     "ends "
     "at its own rank.",
     "n - 1 rounds, (n - 1) / n m moved and reduced",
     "2 ranks, and some large blocks of hosts with several ranks each; else "
     "others take fewer rounds",
     "the first half of the allreduce by ring", 5},
    {kReduceScatter, "recursive_halving",
     "Ranks exchange the half of the blocks that the other one's half of the "
     "ranks is for, then a quarter, and so on. For other numbers than powers "
     "of "
     "two ranks are folded.",
     "log2 n rounds, (n - 1) / n m moved and reduced (folded: 2 rounds and "
     "about m more)",
     "small blocks, of many ranks",
     "Thakur et al. 2005 (see reduce), section 4.4 (short messages)"},
    {kReduceScatter, "pairwise",
     "In turn t each rank sends the block of the one t above directly to it: "
     "no message waits for another.",
     "1 round of n - 1 messages, (n - 1) / n m moved and reduced",
     "large blocks, and all of few ranks",
     "Thakur et al. 2005 (see reduce), section 4.4 (long messages)", 5},
    {kReduceScatterv, "ring",
     "As reduce_scatter by ring, with blocks of any sizes.",
     "as reduce_scatter by ring, for even blocks", "as reduce_scatter by ring",
     "as reduce_scatter by ring", 5},
    {kReduceScatterv, "recursive_halving",
     "As reduce_scatter by recursive halving, with blocks of any sizes.",
     "as reduce_scatter by recursive halving, for even blocks",
     "small blocks, of many ranks", "as reduce_scatter by recursive halving"},
    {kReduceScatterv, "pairwise",
     "As reduce_scatter by pairwise exchange, with blocks of any sizes.",
     "as reduce_scatter by pairwise exchange, for even blocks",
     "large blocks, and all of few ranks",
     "as reduce_scatter by pairwise exchange", 5},
    {kAlltoall, "pairwise",
     "In turn t each rank sends to the one t above and receives from the one t "
     "below; the executor's window keeps some turns in flight.",
     "1 round of n - 1 messages, (n - 1) / n m moved", "large blocks",
     "Thakur et al. 2005 (see reduce), section 4.3 (long messages)", 5},
    {kAlltoall, "bruck",
     "In round k all blocks whose distance to go has bit k travel 2^k ranks "
     "together. Few messages, but a block travels up to log2 n times.",
     "ceil(log2 n) rounds (the last one counts as in allgather by bruck), "
     "about log2 n / 2 m moved, and as much copied",
     "small blocks",
     "Bruck et al. 1997 (see bcube), section 3 (index); Thakur et al. 2005 "
     "(see "
     "reduce), section 4.3 (short messages)"},
    {kAlltoallv, "pairwise",
     "As alltoall by pairwise exchange, with blocks of any sizes: each rank "
     "knows only its own.",
     "as alltoall by pairwise exchange, for even blocks", "always",
     "as alltoall by pairwise exchange", 5},
    {kAllreduce, "hierarchical_ring",
     "A reduce-scatter inside each host, a ring among the owners of each lane, "
     "and an allgather inside.",
     "2 (H - 1) rounds between hosts, 2 of k - 1 messages inside; 2 (H - 1) / "
     "H m / k moved "
     "between hosts, 2 (k - 1) / k m inside",
     "large vectors of several hosts with several ranks each",
     "Träff, Hunold, \"Decomposing MPI Collectives for Exploiting Multi-lane "
     "Communication\", CLUSTER 2020 (long: arXiv 1910.13373), full-lane "
     "allreduce",
     6, 1, 3},
    {kAllreduce, "hierarchical_doubling",
     "The same with recursive doubling among the owners of each lane: fewer "
     "rounds, more bytes.",
     "log2 H rounds between hosts (2 more if folded), 2 of k - 1 messages "
     "inside; log2 H m / k "
     "moved between hosts, 2 (k - 1) / k m inside",
     "smaller vectors of several hosts with several ranks each",
     "Träff, Hunold 2020 (see hierarchical_ring), full-lane allreduce", 6, 1,
     3},
    {kBroadcast, "hierarchical",
     "The root hands out lanes; each goes down a binomial tree of hosts, and "
     "every host puts them together.",
     "log2 H rounds between hosts, 2 of k - 1 messages inside; log2 H m / k "
     "moved between hosts, "
     "2 (k - 1) / k m inside",
     "several hosts with several ranks each",
     "Träff, Hunold 2020 (see allreduce), full-lane broadcast", 6, 1, 3},
    {kBarrier, "hierarchical",
     "The ranks of a host report to its first one, the first ones meet by "
     "dissemination, and tell theirs.",
     "ceil(log2 H) rounds between hosts, 2 of k - 1 messages inside; a byte "
     "each",
     "several hosts with several ranks each", kBarrierOfHosts, 6, 1, 3},
    {kReduce, "hierarchical",
     "A reduce-scatter inside each host; each lane goes up a binomial tree of "
     "hosts, and the root collects them.",
     "log2 H rounds between hosts, 2 of k - 1 messages inside; log2 H m / k "
     "moved and reduced "
     "between hosts, 2 (k - 1) / k m moved inside",
     "several hosts with several ranks each",
     "Träff, Hunold 2020 (see allreduce), full-lane reduce", 6, 1, 3},
    {kAllgather, "hierarchical",
     "Each block goes to the counterpart of its rank on every other host, "
     "once; everybody shares with its host what it has got.",
     "1 round of H - 1 messages between hosts, 1 inside; (H - 1) / n m moved "
     "between hosts, (n - H) / n m inside",
     "several hosts with several ranks each",
     "Träff, Hunold 2020 (see allreduce), full-lane allgather", 6, 1, 3},
    {kAllgatherv, "hierarchical",
     "Each block goes to the counterpart of its rank on every other host, "
     "once; everybody shares with its host what it has got.",
     "1 round of H - 1 messages between hosts, 1 inside; (H - 1) / n m moved "
     "between hosts, (n - H) / n m inside",
     "several hosts with several ranks each", "as allgather, hierarchical", 6,
     1, 3},
    {kReduceScatter, "in_order", "The first half of allreduce in order.",
     "1 round of 2 n - 3 messages one after the other, (n - 1) / n m moved and "
     "reduced",
     "as allreduce in order", "none: made for that", 4},
    {kReduceScatter, "hierarchical",
     "The sum for a rank of another host is made by its counterpart, and goes "
     "there once.",
     "1 round inside, 1 of H - 1 messages between hosts; (n - H) / n m moved "
     "and reduced inside, (H - 1) / n m between hosts",
     "several hosts with several ranks each",
     "Träff, Hunold 2020 (see allreduce), full-lane reduce_scatter", 6, 1, 3},
    {kReduceScatterv, "in_order",
     "As reduce_scatter in order, with blocks of any sizes.",
     "1 round of 2 n - 3 messages one after the other, (n - 1) / n m moved and "
     "reduced",
     "as allreduce in order", "none: made for that", 4},
    {kReduceScatterv, "hierarchical",
     "The sum for a rank of another host is made by its counterpart, and goes "
     "there once.",
     "1 round inside, 1 of H - 1 messages between hosts; (n - H) / n m moved "
     "and reduced inside, (H - 1) / n m between hosts",
     "several hosts with several ranks each", "as reduce_scatter, hierarchical",
     6, 1, 3},
};

}  // namespace

const Description* descriptionOf(const AlgorithmInfo& algorithm) {
  for (const Description& d : kDescriptions) {
    if (d.collective == algorithm.collective && d.algorithm == algorithm.name) {
      return &d;
    }
  }
  return nullptr;
}

std::string_view promiseOf(Collective collective) {
  switch (collective) {
    case kAllreduce:
      return "Every rank ends with the reduction of all ranks' vectors.";
    case kReduce:
      return "The root ends with the reduction of all ranks' vectors.";
    case kBroadcast:
      return "Every rank ends with the root's vector.";
    case kBarrier:
      return "No rank leaves before all have come.";
    case kScatter:
      return "Each rank ends with its block of the root's vector.";
    case kGather:
      return "The root ends with all ranks' blocks.";
    case kGatherv:
      return "The same for blocks of different sizes.";
    case kAllgather:
      return "Every rank ends with all ranks' blocks.";
    case kAllgatherv:
      return "The same for blocks of different sizes.";
    case kReduceScatter:
      return "Each rank ends with its block of the reduction of all vectors.";
    case kReduceScatterv:
      return "The same for blocks of different sizes.";
    case kAlltoall:
      return "Each rank ends with the block that every other one has for it.";
    case kAlltoallv:
      return "The same for blocks of different sizes.";
  }
  return "";
}

}  // namespace gloo_simulate
