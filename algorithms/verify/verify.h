// Proves what the executor would do with an algorithm for one size: by running
// the expanded programs of all ranks on symbolic values, with synchronous sends
// and no wildcard receive.
//
// One run decides all: an action starts when others are done or have started,
// and messages of a pair match in the order of their start, which is fixed; so
// no start ever disables another, and every maximal run performs the same
// actions on the same values. Buffered sends only add runs in which a send is
// done earlier; whatever reads or writes what it touches waits for its *done*,
// and the check for races is made on the order of waits alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/program.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {

// What one rank hands out to and collects from each rank, for v-collectives.
struct RankCounts {
  std::vector<size_t> sendOffsets;
  std::vector<size_t> recvOffsets;
};

// One call of a collective: also what the simulator runs.
struct Job {
  const AlgorithmInfo* algorithm = nullptr;
  int size = 1;
  int root = 0;
  int radix = 2;
  const HostMap* hosts = nullptr;
  size_t count = 1;                // as Counts::count
  std::vector<RankCounts> counts;  // v-collectives: one per rank
  // `inPlace`: where the collective offers it. The verifier wants elements of
  // one byte.
  ExpandOptions options;
  // A rank sends one message at a time, in the order of its program, and
  // receives one: what published numbers of rounds count.
  bool onePort = false;

  Setting setting(int rank) const { return {rank, size, root, radix, hosts}; }
  Counts countsOf(int rank) const;
  Layouts layouts(int rank) const;
  ExpandOptions optionsOf(int rank) const;
  std::string str() const;
};

struct Report {
  std::string error;        // empty: proven
  size_t busiestBytes = 0;  // most that one rank sends or receives
  size_t reducedBytes = 0;  // most that one rank reduces
  int rounds = 0;           // longest chain of messages
};

// What the executor would run.
std::vector<Program> programsOf(const Job& job);

Report verify(const Job& job);

// The same for programs from elsewhere, of which `job` tells the promise.
Report verifyPrograms(const Job& job, const std::vector<Program>& programs);

// Empty, or which message of the program, of so many ranks, may start before
// the one before it to the same peer in the same direction, or names another.
std::string findDisorder(const Program& program, int ranks);

// Empty, or how two actions of the program can touch the same memory at once.
std::string findRace(const Program& program, const size_t (&sizes)[kMemories]);

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
