#include <algorithm>

#include "algorithms/folding.h"
#include "algorithms/hosts.h"
#include "algorithms/work.h"

// Where hosts differ in size, what the busiest rank of any host has at most.

GLOO_NAMESPACE_BEGIN
namespace algorithms::work {
namespace {

// A host as seen by its busiest rank.
struct Host {
  Host(const HostMap& map, int host)
      : number(host),
        ranks(map.ranksOn(host)),
        most(map.mostPerRank(host)),
        share(most / map.lanes()) {}

  const int number;
  const double ranks;
  const double most;   // lanes of a rank
  const double share;  // of the vector that these lanes are
};

struct Parts {
  Work inside;
  Work between;
};

// `partsOf` a host; of the longest chain, and of the busiest rank.
template <typename PartsOf>
Work worst(const Setting& s, const PartsOf& partsOf) {
  Work result;
  Work between;
  for (int host = 0; host < s.hosts->hosts(); host++) {
    const Parts parts = partsOf(Host(*s.hosts, host));
    const double moved = parts.inside.moved + parts.between.moved;
    if (moved > result.moved) {
      result.moved = moved;
      result.insideMoved = parts.inside.moved;
    }
    result.reduced =
        std::max(result.reduced, parts.inside.reduced + parts.between.reduced);
    result.insideRounds = std::max(result.insideRounds, parts.inside.rounds);
    result.insideMessages =
        std::max(result.insideMessages, parts.inside.messages);
    between.rounds = std::max(between.rounds, parts.between.rounds);
    between.messages = std::max(between.messages, parts.between.messages);
  }
  result.rounds = result.insideRounds + between.rounds;
  result.messages = result.insideMessages + between.messages;
  return result;
}

double levelsOf(const Setting& s) { return ceilLog2(s.hosts->hosts()); }

// Hands its lanes out and collects the others', and the reverse.
Work twiceInside(const Host& h) {
  const double others = h.ranks - 1;
  return {others > 0 ? 2.0 : 0.0, 1 - h.share + others * h.share, 0,
          2 * others};
}

Work allreduceOf(const Setting& s, double rounds, double moved,
                 double reduced) {
  return worst(s, [&](const Host& h) {
    Parts parts{twiceInside(h), {rounds, moved * h.share, reduced * h.share}};
    parts.inside.reduced = (h.ranks - 1) * h.share;
    parts.between.messages = rounds * h.most;
    return parts;
  });
}

Work rooted(const Setting& s, bool reduces) {
  const int rootHost = s.hosts->hostOf(s.root);
  return worst(s, [&](const Host& h) {
    const bool hasRoot = h.number == rootHost;
    const double levels = std::max(0.0, levelsOf(s) - (hasRoot ? 0 : 1));
    Parts parts{twiceInside(h), {levelsOf(s), levels * h.share}};
    if (!hasRoot) {
      parts.inside.moved = (h.ranks - 1) * h.share;
    }
    if (reduces) {
      parts.inside.reduced = (h.ranks - 1) * h.share;
      parts.between.reduced = levels * h.share;
    }
    parts.between.messages = levelsOf(s) * h.most;
    return parts;
  });
}

Work blocks(const Setting& s, bool reduces) {
  const HostMap& map = *s.hosts;
  return worst(s, [&](const Host& h) {
    const int mine = map.ranksOn(h.number);
    double held = 0;  // of its own host, one
    for (const auto& [ranks, hosts] : map.hostsByRanks()) {
      held += static_cast<double>(hosts) * ((ranks + mine - 1) / mine);
    }
    const double others = h.ranks - 1;
    const double hosts = map.hosts() - 1;
    Parts parts{{others > 0 ? 1.0 : 0.0, others * held / s.size},
                {hosts > 0 ? 1.0 : 0.0, (held - 1) / s.size}};
    parts.inside.messages = others * held;
    parts.between.messages = held - 1;
    if (reduces) {
      parts.inside.reduced = parts.inside.moved;
      parts.between.reduced = hosts / s.size;
    }
    return parts;
  });
}

}  // namespace

Work hierarchicalRing(const Setting& s) {
  const double hosts = s.hosts->hosts();
  const double others = (hosts - 1) / hosts;
  return allreduceOf(s, 2 * (hosts - 1), 2 * others, others);
}

Work hierarchicalDoubling(const Setting& s) {
  const Folding f({0, s.hosts->hosts()});
  const double exchanges = f.levels + (f.extra > 0 ? 1 : 0);
  return allreduceOf(s, f.levels + (f.extra > 0 ? 2 : 0), exchanges, exchanges);
}

Work hierarchicalBroadcast(const Setting& s) { return rooted(s, false); }

Work hierarchicalReduce(const Setting& s) { return rooted(s, true); }

Work hierarchicalBarrier(const Setting& s) {
  return worst(s, [&](const Host& h) {
    const double others = h.ranks - 1;
    Parts parts{{others > 0 ? 2.0 : 0.0, others, others, 2 * others},
                {levelsOf(s), levelsOf(s), levelsOf(s)}};
    parts.between.messages = levelsOf(s);
    return parts;
  });
}

Work hierarchicalAllgather(const Setting& s) { return blocks(s, false); }

Work hierarchicalReduceScatter(const Setting& s) { return blocks(s, true); }

}  // namespace algorithms::work
GLOO_NAMESPACE_END
