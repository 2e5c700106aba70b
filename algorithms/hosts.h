// Which ranks share a host, in the form that schedules need.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Hosts are numbered in the order of their lowest ranks, and the ranks of a
// host have indices from 0 on, in their order.
//
// A vector is cut into as many lanes as the largest host has ranks. On every
// host each lane belongs to one rank, and each rank to at least one lane: hosts
// with fewer ranks have ranks with more lanes.
//
// Immutable; thread-safe. All functions take constant time.
class HostMap {
 public:
  // The number of each rank's host; any numbers. At least one rank.
  explicit HostMap(const std::vector<int>& hostOfRank);
  // Hosts of `ranksPerHost` ranks each, rank by rank; the last may have fewer.
  static HostMap ofEqualHosts(int size, int ranksPerHost);

  int size() const { return static_cast<int>(hosts_.size()); }
  int hosts() const { return static_cast<int>(begins_.size()) - 1; }
  int lanes() const { return lanes_; }
  // How many hosts have so many ranks: few entries, however many hosts.
  const std::map<int, int>& hostsByRanks() const { return hostsByRanks_; }
  // Whether some ranks share a host and others do not.
  bool isMixed() const { return hosts() > 1 && hosts() < size(); }

  int hostOf(int rank) const { return hosts_[static_cast<size_t>(rank)]; }
  int indexOf(int rank) const { return indices_[static_cast<size_t>(rank)]; }
  int ranksOn(int host) const { return begin(host + 1) - begin(host); }
  int rankAt(int host, int index) const {
    return ranks_[static_cast<size_t>(begin(host)) +
                  static_cast<size_t>(index)];
  }

  // The lanes of the rank with this index are firstLane(index) to
  // firstLane(index + 1) - 1.
  int firstLane(int host, int index) const {
    return index * lanes_ / ranksOn(host);
  }
  int ownerOf(int host, int lane) const {
    return rankAt(host, ((lane + 1) * ranksOn(host) - 1) / lanes_);
  }

  // Most lanes, and most counterparts on one host, of a rank of this host.
  int mostPerRank(int host) const {
    return (lanes_ + ranksOn(host) - 1) / ranksOn(host);
  }

  // Every rank has a counterpart on every other host. Those whose counterpart
  // on `host` has this index are, on host `other`, the ranks with indices
  // firstCounterpart(host, index, other) to
  // firstCounterpart(host, index + 1, other) - 1: maybe none.
  int counterpart(int rank, int host) const {
    return rankAt(host, indexOf(rank) * ranksOn(host) / ranksOn(hostOf(rank)));
  }
  int firstCounterpart(int host, int index, int other) const {
    return (index * ranksOn(other) + ranksOn(host) - 1) / ranksOn(host);
  }

 private:
  int begin(int host) const { return begins_[static_cast<size_t>(host)]; }

  std::vector<int> hosts_;    // of each rank
  std::vector<int> indices_;  // of each rank
  std::vector<int> ranks_;    // of host 0, of host 1, ...
  std::vector<int> begins_;   // of each host, in ranks_; and the end
  std::map<int, int> hostsByRanks_;
  int lanes_ = 1;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
