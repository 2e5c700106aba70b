#include "tests/algorithms/uneven_work.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "algorithms/hosts.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {
namespace {

// Counts of ranks, or of groups of them, in a ring.
class Counts {
 public:
  explicit Counts(std::vector<size_t> counts) : counts_(std::move(counts)) {
    sums_.push_back(0);
    for (size_t turn = 0; turn < 2 * counts_.size(); turn++) {
      sums_.push_back(sums_.back() + counts_[turn % counts_.size()]);
    }
  }

  int size() const { return static_cast<int>(counts_.size()); }
  size_t all() const { return sums_[counts_.size()]; }
  size_t of(int i) const { return counts_[at(i)]; }
  // Of first, first + 1, ...
  size_t of(int first, int count) const {
    return sums_[at(first) + static_cast<size_t>(count)] - sums_[at(first)];
  }

 private:
  size_t at(int i) const {
    return static_cast<size_t>((i % size() + size()) % size());
  }

  std::vector<size_t> counts_;
  std::vector<size_t> sums_;
};

std::vector<size_t> countsOf(const std::vector<size_t>& offsets) {
  std::vector<size_t> counts(offsets.size());
  std::adjacent_difference(offsets.begin(), offsets.end(), counts.begin());
  counts.erase(counts.begin());
  return counts;
}

Counts countsOf(const Job& job) {
  return Counts(countsOf(job.counts[0].sendOffsets));
}

int log2Up(int n) {
  int levels = 0;
  for (int reach = 1; reach < n; reach *= 2) {
    levels++;
  }
  return levels;
}

// ---- Allgatherv: each rank receives all blocks but its own. What it sends:

// Around the ring, all but the block that ends at its neighbour's.
size_t sentInRing(const Counts& c, int rank) {
  return c.all() - c.of(rank + 1);
}

// At distance 1, 2, 4, ... all that it has: the blocks of the ranks that differ
// from it in the lower bits only.
size_t sentByDoubling(const Counts& c, int rank) {
  size_t sent = 0;
  for (int group = 1; group < c.size(); group *= 2) {
    sent += c.of(rank / group * group, group);
  }
  return sent;
}

// The blocks from its own on, twice as many each time; at last those that are
// missing.
size_t sentByBruck(const Counts& c, int rank) {
  size_t sent = 0;
  for (int held = 1; held < c.size(); held *= 2) {
    sent += c.of(rank, std::min(held, c.size() - held));
  }
  return sent;
}

// Its block; then the pair's two; then what it got last, which comes from the
// two sides in turn, from one pair further away each second time.
size_t sentToNeighbours(const Counts& c, int rank) {
  const int pair = rank / 2;
  const int side = rank % 2 == 0 ? -1 : 1;  // of the first pair that comes
  const auto ofPair = [&](int p) { return c.of(2 * p, 2); };
  size_t sent = c.of(rank);
  const int exchanges = c.size() / 2 - 1;  // of pairs
  for (int i = 0; i < exchanges; i++) {
    const int distance = (i + 1) / 2;
    sent += ofPair(pair + (i % 2 == 1 ? side : -side) * distance);
  }
  return sent;
}

// Its block to its host's others and to each other host; and to its host's
// others what came from the other hosts' ranks with its index.
size_t sentInHosts(const Counts& c, const HostMap& map, int rank) {
  const int ranks = map.ranksOn(0);
  size_t lane = 0;
  for (int host = 0; host < map.hosts(); host++) {
    lane += c.of(map.rankAt(host, map.indexOf(rank)));
  }
  return static_cast<size_t>(ranks - 1) * lane +
         static_cast<size_t>(map.hosts() - 1) * c.of(rank);
}

UnevenWork allgathervOf(const Job& job) {
  const Counts c = countsOf(job);
  const std::string name(job.algorithm->name);
  UnevenWork work(job.size);
  for (int rank = 0; rank < job.size && job.size > 1; rank++) {
    const auto at = static_cast<size_t>(rank);
    work.received[at] = c.all() - c.of(rank);
    work.sent[at] = name == "ring"                 ? sentInRing(c, rank)
                    : name == "recursive_doubling" ? sentByDoubling(c, rank)
                    : name == "bruck"              ? sentByBruck(c, rank)
                    : name == "neighbour_exchange" ? sentToNeighbours(c, rank)
                    : name == "hierarchical"
                        ? sentInHosts(c, *job.hosts, rank)
                        : throw std::logic_error("allgatherv " + name);
  }
  return work;
}

// ---- Reduce_scatterv: what a rank receives it reduces. But with folding, each
// rank sends all blocks but its own. What it receives:

// Around the ring, all but the block that begins with it.
size_t receivedInRing(const Counts& c, int rank) {
  return c.all() - c.of(rank - 1);
}

// Its block from everybody.
size_t receivedInPairs(const Counts& c, int rank) {
  return static_cast<size_t>(c.size() - 1) * c.of(rank);
}

// The blocks of its lane from its host's others; then its own from other hosts.
size_t receivedInHosts(const Counts& c, const HostMap& map, int rank) {
  return sentInHosts(c, map, rank);
}

// Halves of halves among a power of two of members. Of the first 2 * `extra`
// ranks the odd ones hand all to the even ones before, and get their block
// after: a member has one rank's blocks, or two.
void halve(const Counts& c, UnevenWork& work) {
  const int power = 1 << (log2Up(c.size() + 1) - 1);
  const int extra = c.size() - power;
  const auto first = [&](int member) {
    return member + std::min(member, extra);
  };
  for (int member = 0; member < power; member++) {
    const int rank = first(member);
    const auto at = static_cast<size_t>(rank);
    for (int half = power / 2; half >= 1; half /= 2) {
      const int begin = member / half * half;  // of what it goes on with
      const int other = begin ^ half;
      work.received[at] +=
          c.of(first(begin), first(begin + half) - first(begin));
      work.sent[at] += c.of(first(other), first(other + half) - first(other));
    }
    if (member < extra) {
      work.received[at] += c.all();
      work.sent[at] += c.of(rank + 1);
      work.sent[at + 1] = c.all();
      work.received[at + 1] = c.of(rank + 1);
    }
    work.reduced[at] = work.received[at];
  }
}

UnevenWork reduceScattervOf(const Job& job) {
  const Counts c = countsOf(job);
  const std::string name(job.algorithm->name);
  UnevenWork work(job.size);
  if (name == "recursive_halving") {
    halve(c, work);
    return work;
  }
  for (int rank = 0; rank < job.size && job.size > 1; rank++) {
    const auto at = static_cast<size_t>(rank);
    work.sent[at] = c.all() - c.of(rank);
    work.received[at] = name == "ring" ? receivedInRing(c, rank)
                        : name == "pairwise" || name == kInOrder
                            ? receivedInPairs(c, rank)
                        : name == "hierarchical"
                            ? receivedInHosts(c, *job.hosts, rank)
                            : throw std::logic_error("reduce_scatterv " + name);
    work.reduced[at] = work.received[at];
  }
  return work;
}

// ---- Each block once, from its owner to whom it is for.

UnevenWork gathervOf(const Job& job) {
  const Counts c = countsOf(job);
  UnevenWork work(job.size);
  for (int rank = 0; rank < job.size; rank++) {
    if (rank != job.root) {
      work.sent[static_cast<size_t>(rank)] = c.of(rank);
      work.received[static_cast<size_t>(job.root)] += c.of(rank);
    }
  }
  return work;
}

UnevenWork alltoallvOf(const Job& job) {
  UnevenWork work(job.size);
  for (size_t from = 0; from < work.sent.size(); from++) {
    const auto counts = countsOf(job.counts[from].sendOffsets);
    for (size_t to = 0; to < counts.size(); to++) {
      if (to != from) {
        work.sent[from] += counts[to];
        work.received[to] += counts[to];
      }
    }
  }
  return work;
}

}  // namespace

size_t UnevenWork::busiest() const {
  return std::max(*std::max_element(sent.begin(), sent.end()),
                  *std::max_element(received.begin(), received.end()));
}

size_t UnevenWork::mostReduced() const {
  return *std::max_element(reduced.begin(), reduced.end());
}

UnevenWork unevenWorkOf(const Job& job) {
  switch (job.algorithm->collective) {
    case Collective::kAllgatherv:
      return allgathervOf(job);
    case Collective::kReduceScatterv:
      return reduceScattervOf(job);
    case Collective::kGatherv:
      return gathervOf(job);
    case Collective::kAlltoallv:
      return alltoallvOf(job);
    default:
      throw std::logic_error("not a v-collective");
  }
}

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
