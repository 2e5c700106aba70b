#include "algorithms/hierarchy.h"
#include "algorithms/schedules.h"

// A block is handed from host to host once only: by the rank that it is of, to
// or from that rank's counterpart on the other host (see HostMap).

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

const Blocks kOwnInput{Area::kInput, 0, 1};

// The nth rank on `other` whose counterpart on this host has this index; -1:
// there are fewer.
int nthCounterpart(const Hierarchy& h, int index, int other, int nth) {
  const int i = h.map.firstCounterpart(h.host, index, other) + nth;
  return i < h.map.firstCounterpart(h.host, index + 1, other)
             ? h.map.rankAt(other, i)
             : -1;
}

// Inside a host, a rank exchanges with all others in turn: 2 * most steps for
// each turn, a send and a receive of up to `most` blocks one by one.
struct Inside {
  Inside(const Hierarchy& h, int most, int i)
      : turn(i / (2 * most) + 1),
        nth(i % (2 * most) / 2),
        sends(i % 2 == 0),
        to(wrap(h.index + turn, h.ranks)),
        from(wrap(h.index - turn, h.ranks)) {}

  const int turn;
  const int nth;
  const bool sends;
  const int to;  // indices
  const int from;
};

int insideSteps(const Hierarchy& h, int most) {
  return 2 * (h.ranks - 1) * most;
}

// ---- Allgather ----

// In turn t a rank hands its block to its counterpart on the host t above, and
// receives those of its counterparts on the host t below, which it then hands
// to the others on its host. In turn 0 these get its own block.
Step shareBlock(const Hierarchy& h, int turn, int i) {
  const int other = wrap(h.host - turn, h.hosts);
  const Inside inside(h, turn == 0 ? 1 : h.map.mostPerRank(h.host), i);
  const int holder = inside.sends ? h.index : inside.from;
  const int block = nthCounterpart(h, holder, other, inside.nth);
  if (block < 0) {
    return Step::idle(turn);
  }
  const Blocks blocks{Area::kOutput, block, 1};
  return inside.sends ? Step::send(turn, h.neighbour(inside.turn),
                                   turn == 0 ? kOwnInput : blocks)
                      : Step::recv(turn, h.neighbour(-inside.turn), blocks);
}

Step allgatherStep(const Setting& s, int i) {
  const Hierarchy h(s);
  const int most = h.map.mostPerRank(h.host);
  if (i == 0) {
    return Step::copy(0, kOwnInput, {Area::kOutput, s.rank, 1});
  }
  i -= 1;
  if (i < insideSteps(h, 1)) {
    return shareBlock(h, 0, i);
  }
  i -= insideSteps(h, 1);
  const int perTurn = 1 + most + insideSteps(h, most);
  const int turn = i / perTurn + 1;
  i %= perTurn;
  if (i == 0) {
    return Step::send(turn,
                      h.map.counterpart(s.rank, wrap(h.host + turn, h.hosts)),
                      kOwnInput);
  }
  if (i <= most) {
    const int other = wrap(h.host - turn, h.hosts);
    const int block = nthCounterpart(h, h.index, other, i - 1);
    return block < 0 ? Step::idle(turn)
                     : Step::recv(turn, block, {Area::kOutput, block, 1});
  }
  return shareBlock(h, turn, i - 1 - most);
}

// ---- Reduce-scatter: the same the other way round. ----

// Sums of this host's contributions to the blocks of the host `turn` above, by
// the counterparts of whom they are for; in turn 0 of its own.
Step reduceBlock(const Hierarchy& h, int turn, int i) {
  const int other = wrap(h.host + turn, h.hosts);
  const Inside inside(h, turn == 0 ? 1 : h.map.mostPerRank(h.host), i);
  const int holder = inside.sends ? inside.to : h.index;
  const int block = nthCounterpart(h, holder, other, inside.nth);
  if (block < 0) {
    return Step::idle(turn);
  }
  const Blocks in{Area::kInput, block, 1};
  if (inside.sends) {
    return Step::send(turn, h.neighbour(inside.turn), in);
  }
  const Blocks sum = turn == 0 ? Blocks{Area::kOutput, 0, 1}
                               : Blocks{Area::kScratch, block, 1};
  return Step::recvReduce(turn, h.neighbour(-inside.turn),
                          inside.turn == 1 ? in : sum, sum,
                          inside.from > h.index);
}

// What arrives comes from the hosts below in turn and then, from the highest
// one down: as in the pairwise reduce-scatter of ranks.
Step receiveSum(const Setting& s, const Hierarchy& h, int turn) {
  const int other = wrap(h.host - turn, h.hosts);
  const Blocks out{Area::kOutput, 0, 1};
  const bool untouched = h.ranks == 1 && turn == 1;
  return Step::recvReduce(turn, h.map.counterpart(s.rank, other),
                          untouched ? Blocks{Area::kInput, s.rank, 1} : out,
                          out, other > h.host);
}

Step reduceScatterStep(const Setting& s, int i) {
  const Hierarchy h(s);
  const int most = h.map.mostPerRank(h.host);
  if (i < insideSteps(h, 1)) {
    return reduceBlock(h, 0, i);
  }
  i -= insideSteps(h, 1);
  const int perTurn = insideSteps(h, most) + most + 1;
  const int turn = i / perTurn + 1;
  i %= perTurn;
  if (i < insideSteps(h, most)) {
    return reduceBlock(h, turn, i);
  }
  i -= insideSteps(h, most);
  if (i == most) {
    return receiveSum(s, h, turn);
  }
  const int other = wrap(h.host + turn, h.hosts);
  const int block = nthCounterpart(h, h.index, other, i);
  return block < 0 ? Step::idle(turn)
                   : Step::send(turn, block,
                                {h.ranks == 1 ? Area::kInput : Area::kScratch,
                                 block, 1});
}

}  // namespace

Schedule allgatherHierarchical(const Setting& s) {
  const Hierarchy h(s);
  const int most = h.map.mostPerRank(h.host);
  return {
      s,
      1 + insideSteps(h, 1) + (h.hosts - 1) * (1 + most + insideSteps(h, most)),
      allgatherStep};
}

Schedule reduceScatterHierarchical(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  const Hierarchy h(s);
  const int most = h.map.mostPerRank(h.host);
  return {s,
          insideSteps(h, 1) + (h.hosts - 1) * (insideSteps(h, most) + most + 1),
          reduceScatterStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
