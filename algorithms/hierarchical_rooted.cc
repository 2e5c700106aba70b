#include "algorithms/folding.h"
#include "algorithms/hierarchy.h"
#include "algorithms/schedules.h"
#include "algorithms/tree.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// The root, and the tree of hosts below its own.
struct Rooted : Hierarchy {
  explicit Rooted(const Setting& s)
      : Hierarchy(s),
        isRoot(s.rank == s.root),
        rootHost(map.hostOf(s.root)),
        tree({host, hosts, rootHost}) {}

  // Of the host with this number relative to the root's.
  int ownerOn(int relativeHost, int lane) const {
    return map.ownerOf(tree.rankOf(relativeHost), lane);
  }

  const bool isRoot;
  const int rootHost;
  const Tree tree;
};

// ---- Broadcast: all in one round, so that segments flow. ----

// The root hands each lane to its owner on the same host.
Step scatterLane(const Setting& s, const Rooted& h, int lane) {
  const int owner = h.map.ownerOf(h.rootHost, lane);
  if (h.isRoot && owner != s.rank) {
    return Step::send(0, owner, {Area::kInput, lane, 1});
  }
  return !h.isRoot && owner == s.rank
             ? Step::recv(0, s.root, {Area::kOutput, lane, 1})
             : Step::idle(0);
}

// From host to host along the tree: 1 receive and tree.levels sends for each
// lane.
Step passLane(const Rooted& h, Area held, int lane, int i) {
  const Tree& t = h.tree;
  if (i == 0) {
    return t.v == 0 ? Step::idle(0)
                    : Step::recv(0, h.ownerOn(t.parent(), lane),
                                 {Area::kOutput, lane, 1});
  }
  const int bit = 1 << (t.levels - i);
  return t.hasChild(bit)
             ? Step::send(0, h.ownerOn(t.v + bit, lane), {held, lane, 1})
             : Step::idle(0);
}

// Everybody hands its lanes to the others on its host, but not to the root.
Step shareLane(const Setting& s, const Rooted& h, Area held, int i) {
  const int most = h.map.mostPerRank(h.host);
  const int turn = i / (2 * most) + 1;
  const int nth = i % (2 * most) / 2;
  if (i % 2 == 0) {
    const int to = h.neighbour(turn);
    return to == s.root || nth >= h.lanes
               ? Step::idle(0)
               : Step::send(0, to, {held, h.firstLane + nth, 1});
  }
  const Hierarchy other(s, h.neighbour(-turn));
  return h.isRoot || nth >= other.lanes
             ? Step::idle(0)
             : Step::recv(0, h.neighbour(-turn),
                          {Area::kOutput, other.firstLane + nth, 1});
}

Step broadcastStep(const Setting& s, int i) {
  const Rooted h(s);
  const Area held = h.isRoot ? Area::kInput : Area::kOutput;
  const int lanes = h.map.lanes();
  if (i < lanes) {
    return scatterLane(s, h, i);
  }
  i -= lanes;
  const int perLane = h.tree.levels + 1;
  if (i < perLane * h.lanes) {
    return passLane(h, held, h.firstLane + i / perLane, i % perLane);
  }
  i -= perLane * h.lanes;
  if (i < 2 * (h.ranks - 1) * h.map.mostPerRank(h.host)) {
    return shareLane(s, h, held, i);
  }
  return h.isRoot ? Step::copy(1, {Area::kInput, 0, lanes},
                               {Area::kOutput, 0, lanes})
                  : Step::idle(1);
}

// ---- Reduce ----

// Towards the root's host along the tree, of which host v has the sum of the
// hosts v to v + 2^level - 1 before this level. As the binomial reduce.
Step reduceLane(const Rooted& h, Area sum, int level, int lane) {
  const int round = h.ranks - 1;
  const int v = h.tree.v;
  const int bit = 1 << level;
  const bool untouched = h.ranks == 1 && (level == 0 || v + 1 >= h.hosts);
  const Blocks own{untouched ? Area::kInput : sum, lane, 1};
  if ((v & (bit - 1)) != 0) {
    return Step::idle(round);  // has handed over its sum
  }
  if ((v & bit) != 0) {
    return Step::send(round, h.ownerOn(v - bit, lane), own);
  }
  if (v + bit >= h.hosts) {
    return Step::idle(round);
  }
  const int child = h.tree.rankOf(v + bit);
  const int below = bit < h.hosts - v - bit ? bit : h.hosts - v - bit;
  const bool ownFirst =
      lowestOf(h.host, bit, h.hosts) < lowestOf(child, below, h.hosts);
  return Step::recvReduce(round, h.map.ownerOf(child, lane), own,
                          {sum, lane, 1}, ownFirst);
}

// The root collects the lanes from its host.
Step gatherLane(const Setting& s, const Rooted& h, Area sum, int lane) {
  const int round = h.ranks - 1;
  const int owner = h.map.ownerOf(h.rootHost, lane);
  if (h.isRoot && owner != s.rank) {
    return Step::recv(round, owner, {Area::kOutput, lane, 1});
  }
  return !h.isRoot && owner == s.rank
             ? Step::send(round, s.root, {sum, lane, 1})
             : Step::idle(round);
}

Step reduceStep(const Setting& s, int i) {
  const Rooted h(s);
  const Area sum = h.isRoot ? Area::kOutput : Area::kScratch;
  const int inside = 2 * (h.ranks - 1);
  if (i < inside) {
    return reduceLanesInside(h, sum, 1, i);
  }
  i -= inside;
  if (i < h.tree.levels * h.lanes) {
    return reduceLane(h, sum, i / h.lanes, h.firstLane + i % h.lanes);
  }
  return gatherLane(s, h, sum, i - h.tree.levels * h.lanes);
}

// ---- Barrier: the first rank of each host speaks for the others. ----

Step barrierStep(const Setting& s, int i) {
  const Hierarchy h(s);
  const Blocks in{Area::kInput, 0, 1};
  const Blocks out{Area::kOutput, 0, 1};
  const int first = h.map.rankAt(h.host, 0);
  if (s.rank != first) {
    return i == 0 ? Step::send(0, first, in) : Step::recv(1, first, out);
  }
  const int others = h.ranks - 1;
  if (i < others) {
    return Step::recvReduce(i, h.neighbour(i + 1), i == 0 ? in : out, out,
                            true);
  }
  i -= others;
  const int levels = ceilLog2(h.hosts);
  const int round = others + i / 2;
  if (i >= 2 * levels) {
    return Step::send(others + levels, h.neighbour(i - 2 * levels + 1), out);
  }
  const int distance = 1 << (i / 2);
  const Blocks own = others == 0 && i < 2 ? in : out;
  const auto leader = [&](int turns) {
    return h.map.rankAt(wrap(h.host + turns, h.hosts), 0);
  };
  return i % 2 == 0
             ? Step::send(round, leader(distance), own)
             : Step::recvReduce(round, leader(-distance), own, out, true);
}

}  // namespace

Schedule broadcastHierarchical(const Setting& s) {
  const Rooted h(s);
  return {s,
          h.map.lanes() + (h.tree.levels + 1) * h.lanes +
              2 * (h.ranks - 1) * h.map.mostPerRank(h.host) + 1,
          broadcastStep};
}

Schedule reduceHierarchical(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  const Rooted h(s);
  const int gathers = h.host == h.rootHost ? h.map.lanes() : 0;
  return {s, 2 * (h.ranks - 1) + h.tree.levels * h.lanes + gathers, reduceStep};
}

Schedule barrierHierarchical(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  const Hierarchy h(s);
  const bool speaks = h.index == 0;
  return {s, speaks ? 2 * (h.ranks - 1) + 2 * ceilLog2(h.hosts) : 2,
          barrierStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
