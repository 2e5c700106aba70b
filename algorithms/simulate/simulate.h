// How long an algorithm takes on a network that exists only as numbers: a
// discrete-event simulation of what the executor does with the expanded
// schedules of all ranks. docs/simulator.md describes the model.
#pragma once

#include <cstdint>
#include <functional>

#include "algorithms/network.h"
#include "algorithms/verify/verify.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {

// The job's `onePort` means nothing here. Without counts of their own, ranks
// have blocks of equal size, also in the v-collectives.
struct Scenario {
  verify::Job job;
  NetworkParameters network;
  // A rank, or -1, of which all that costs time costs `slowFactor` times that.
  int slowRank = -1;
  double slowFactor = 1;
};

struct Result {
  double seconds = 0;        // until the last rank is done
  size_t busiestBytes = 0;   // most that one rank sends or receives
  size_t totalBytes = 0;     // sent by all
  size_t receivedBytes = 0;  // by all
  uint64_t messages = 0;
  uint64_t actions = 0;
};

// Something that one rank does, or a message. Seconds.
struct Deed {
  enum Kind : uint8_t { kMessage, kReduce, kCopy };

  Kind kind = kMessage;
  int rank = 0;   // of a message: the sender
  int peer = -1;  // the receiver
  double start = 0;
  double end = 0;
  size_t bytes = 0;
  Place source;
  Place target;  // of a message: at the receiver
};

struct Observer {
  // Called for each deed when it ends, in the order of their ends.
  std::function<void(const Deed&)> deed;
  // Called now and then with the number of actions that are done.
  std::function<void(uint64_t)> progress;
};

// Deterministic: the same scenario gives the same result on every machine.
// Memory is that of the ranks' windows and of the messages on the way. Throws
// InvalidOperationException if the scenario is none (fewer than one rank, a
// negative parameter, an algorithm that is not for this size).
Result simulate(const Scenario& scenario, const Observer& observer = {});

// Messages in the longest chain, where each rank sends one at a time and
// receives one: the time if a message took 1 and all else nothing, unsegmented.
// `hosts`: for those that need them; borrowed.
int roundsOf(const AlgorithmInfo& algorithm, int size, int root = 0,
             int radix = 2, const HostMap* hosts = nullptr);

// The scenario of roundsOf(): one element of one byte per block; a message
// takes a second.
Scenario unitScenario(const AlgorithmInfo& algorithm, int size, int root = 0,
                      int radix = 2, const HostMap* hosts = nullptr);

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
