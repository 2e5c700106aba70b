#include "algorithms/folding.h"
#include "algorithms/hierarchy.h"
#include "algorithms/schedules.h"

// Operand order: hosts are numbered by their lowest ranks, so a sum over whole
// hosts holds the lowest contribution where it holds the lowest host.

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Of the steps inside the hosts before and after the exchange.
int insideSteps(const Hierarchy& h) { return 2 * (h.ranks - 1); }

// The last steps: everybody hands its lanes to the others on its host.
Step gatherInside(const Hierarchy& h, int blocksPerLane, int round, int i) {
  const int turn = i / 2 + 1;
  if (i % 2 == 0) {
    return Step::send(round + i / 2, h.neighbour(turn),
                      h.lanesOf(h.index, Area::kOutput, blocksPerLane));
  }
  return Step::recv(
      round + i / 2, h.neighbour(-turn),
      h.lanesOf(wrap(h.index - turn, h.ranks), Area::kOutput, blocksPerLane));
}

// A ring of hosts for each lane; as the ring of ranks.
Step laneRingStep(const Hierarchy& h, int i) {
  const int n = h.hosts;
  const int turn = i / (2 * h.lanes);
  const int lane = h.firstLane + i % (2 * h.lanes) / 2;
  const bool sends = i % 2 == 0;
  const int round = h.ranks - 1 + turn;
  const int peer = h.ownerAbove(sends ? 1 : -1, lane);
  const Area own = h.ranks == 1 ? Area::kInput : Area::kOutput;
  const auto part = [&](Area area, int host) {
    return Blocks{area, lane * n + wrap(host, n), 1};
  };
  if (turn < n - 1) {
    if (sends) {
      return Step::send(round, peer,
                        part(turn == 0 ? own : Area::kOutput, h.host - turn));
    }
    const int arriving = h.host - turn - 1;
    return Step::recvReduce(round, peer, part(own, arriving),
                            part(Area::kOutput, arriving), h.host == 0);
  }
  const int back = turn - (n - 1);
  return sends ? Step::send(round, peer, part(Area::kOutput, h.host + 1 - back))
               : Step::recv(round, peer, part(Area::kOutput, h.host - back));
}

Step ringStep(const Setting& s, int i) {
  const Hierarchy h(s);
  const int inside = insideSteps(h);
  const int between = 4 * (h.hosts - 1) * h.lanes;
  if (i < inside) {
    return reduceLanesInside(h, Area::kOutput, h.hosts, i);
  }
  if (i < inside + between) {
    return laneRingStep(h, i - inside);
  }
  return gatherInside(h, h.hosts, h.ranks - 1 + 2 * (h.hosts - 1),
                      i - inside - between);
}

// Recursive doubling among hosts, folded where their number is no power of two,
// for each lane: 2 * levels + 2 exchanges, of which the first and the last are
// those of the folding.
struct LaneDoubling {
  explicit LaneDoubling(const Hierarchy& h)
      : folding({h.host, h.hosts}),
        ends(folding.extra > 0 ? h.lanes : 0),
        steps(2 * ends + 2 * folding.levels * h.lanes),
        rounds(folding.levels + 2) {}

  const Folding folding;  // of hosts
  const int ends;         // steps of the first, and of the last exchange
  const int steps;
  const int rounds;
};

Step laneFoldStep(const Hierarchy& h, const Folding& f, int lane, int round,
                  bool first) {
  if (!f.folds) {
    return Step::idle(round);
  }
  const Blocks in{h.ranks == 1 ? Area::kInput : Area::kOutput, lane, 1};
  const Blocks out{Area::kOutput, lane, 1};
  const int peer = h.ownerAbove(f.member ? 1 : -1, lane);
  if (f.member) {
    return first ? Step::recvReduce(round, peer, in, out, true)
                 : Step::send(round, peer, out);
  }
  return first ? Step::send(round, peer, in) : Step::recv(round, peer, out);
}

Step laneDoublingStep(const Hierarchy& h, const LaneDoubling& d, int i) {
  const Folding& f = d.folding;
  const int before = h.ranks - 1;  // rounds
  if (i < d.ends) {
    return laneFoldStep(h, f, h.firstLane + i, before, true);
  }
  if (i >= d.steps - d.ends) {
    return laneFoldStep(h, f, h.firstLane + i - (d.steps - d.ends),
                        before + d.rounds - 1, false);
  }
  const int at = i - d.ends;
  const int level = at / (2 * h.lanes);
  const int lane = h.firstLane + at % (2 * h.lanes) / 2;
  const int round = before + 1 + level;
  if (!f.member) {
    return Step::idle(round);
  }
  const int peer = h.map.ownerOf(f.rankOf(f.index ^ (1 << level)), lane);
  const bool untouched = level == 0 && !f.folds && h.ranks == 1;
  const Blocks own{untouched ? Area::kInput : Area::kOutput, lane, 1};
  if (at % 2 == 0) {
    return Step::send(round, peer, own);
  }
  return Step::recvReduce(round, peer, own, {Area::kOutput, lane, 1},
                          (f.index >> level) % 2 == 0);
}

Step doublingStep(const Setting& s, int i) {
  const Hierarchy h(s);
  const LaneDoubling d(h);
  const int inside = insideSteps(h);
  if (i < inside) {
    return reduceLanesInside(h, Area::kOutput, 1, i);
  }
  if (i < inside + d.steps) {
    return laneDoublingStep(h, d, i - inside);
  }
  return gatherInside(h, 1, h.ranks - 1 + d.rounds, i - inside - d.steps);
}

}  // namespace

Schedule allreduceHierarchicalRing(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  const Hierarchy h(s);
  return {s, 2 * insideSteps(h) + 4 * (h.hosts - 1) * h.lanes, ringStep};
}

Schedule allreduceHierarchicalDoubling(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  const Hierarchy h(s);
  return {s, 2 * insideSteps(h) + LaneDoubling(h).steps, doublingStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
