// Whose turn it is where the ranks of a host outnumber its processors.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "algorithms/simulate/links.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {

// A rank keeps a processor for as long as it has something to do. Then the
// host's ranks are asked in turn, each of which takes `switching` to say that
// it has nothing, until one is found that has: by each processor that is free.
// One thread.
class Processors {
 public:
  // Of a scenario that Links accept.
  explicit Processors(const Scenario& scenario);

  // Whether the rank has a processor now.
  bool runs(int rank) const {
    return cores_ == 0 || !waits_[static_cast<size_t>(rank)];
  }

  // When a rank has its turn. To be told by take() then; it may have had it
  // before, or somebody else.
  struct Turn {
    int rank = 0;
    Tick time = 0;
    uint32_t change = 0;  // how many there have been on the host
  };
  // The rank, which does not run, has something to do.
  std::optional<Turn> want(int rank, Tick now);
  // Whether the turn still is one; then the rank runs from now on.
  bool take(const Turn& turn);
  // The rank, which runs, has nothing to do.
  void yield(int rank, Tick now);
  // Who is next on the rank's host.
  std::optional<Turn> next(int rank, Tick now) const;

 private:
  struct Host {
    std::vector<int> circle;  // its ranks, as they are asked
    bool shared = false;      // it has more of them than processors
    int free = 0;             // processors
    uint32_t changes = 0;
    int last = 0;           // who was asked last, by place in the circle,
    Tick since = 0;         // at this time
    std::set<int> wanting;  // places
  };

  Host& hostOf(int rank) {
    return hosts_[static_cast<size_t>(rank / ranksPerHost_)];
  }
  const Host& hostOf(int rank) const {
    return hosts_[static_cast<size_t>(rank / ranksPerHost_)];
  }
  int placeOf(int rank) const { return places_[static_cast<size_t>(rank)]; }

  // Who is asked first from `now` on, and when; who comes after takes `each`
  // more, by all processors that are free. There is one.
  struct Asked {
    int place = 0;
    Tick time = 0;
    Tick each = 0;
  };
  Asked askedAt(const Host& host, Tick now) const;
  Turn turnOf(const Host& host, int place, Tick now) const;

  const int ranksPerHost_;
  const int cores_;  // of a host; 0: one for each rank, on all hosts
  const Tick switching_;
  std::vector<Host> hosts_;
  std::vector<int> places_;  // by rank
  std::vector<bool> waits_;  // by rank
};

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
