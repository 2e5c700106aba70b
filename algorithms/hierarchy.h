// What the hierarchical algorithms share: a rank's place among the hosts.
#pragma once

#include "algorithms/hosts.h"
#include "algorithms/schedule.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

struct Hierarchy {
  explicit Hierarchy(const Setting& s, int rank)
      : map(*s.hosts),
        hosts(map.hosts()),
        host(map.hostOf(rank)),
        index(map.indexOf(rank)),
        ranks(map.ranksOn(host)),
        firstLane(map.firstLane(host, index)),
        lanes(map.firstLane(host, index + 1) - firstLane) {}
  explicit Hierarchy(const Setting& s) : Hierarchy(s, s.rank) {}

  // The rank `turns` above this one on its host, and on the host `turns` above
  // its own the owner of a lane; cyclic.
  int neighbour(int turns) const {
    return map.rankAt(host, wrap(index + turns, ranks));
  }
  int ownerAbove(int turns, int lane) const {
    return map.ownerOf(wrap(host + turns, hosts), lane);
  }

  // All blocks of the lanes of the rank with this index, where each lane has as
  // many blocks.
  Blocks lanesOf(int ofIndex, Area area, int blocksPerLane) const {
    const int first = map.firstLane(host, ofIndex);
    const int end = map.firstLane(host, ofIndex + 1);
    return {area, first * blocksPerLane, (end - first) * blocksPerLane};
  }

  const HostMap& map;
  const int hosts;
  const int host;   // this rank's
  const int index;  // of this rank on its host
  const int ranks;  // on this host
  const int firstLane;
  const int lanes;  // of this rank
};

// Steps 0 to 2 (ranks - 1) - 1 and rounds 0 to ranks - 2 of a reduce-scatter
// inside each host: each rank ends with the sums of its lanes in `sum`. As the
// pairwise reduce-scatter: see there for the order of operands.
inline Step reduceLanesInside(const Hierarchy& h, Area sum, int blocksPerLane,
                              int i) {
  const int turn = i / 2 + 1;
  const int to = wrap(h.index + turn, h.ranks);
  const int from = wrap(h.index - turn, h.ranks);
  if (i % 2 == 0) {
    return Step::send(turn - 1, h.neighbour(turn),
                      h.lanesOf(to, Area::kInput, blocksPerLane));
  }
  return Step::recvReduce(
      turn - 1, h.neighbour(-turn),
      h.lanesOf(h.index, turn == 1 ? Area::kInput : sum, blocksPerLane),
      h.lanesOf(h.index, sum, blocksPerLane), from > h.index);
}

}  // namespace algorithms
GLOO_NAMESPACE_END
