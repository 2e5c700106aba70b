// What a network costs: the parameters of the cost model and the simulator.
#pragma once

#include <algorithm>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// LogGP, in seconds. A. Alexandrov, M. Ionescu, K. Schauser, C. Scheiman,
// "LogGP: Incorporating Long Messages into the LogP Model", SPAA 1995.
struct LinkParameters {
  double latency = 0;     // L: from the sender's last work to the receiver's
  double overhead = 0;    // o: of CPU, on each side, per message
  double gap = 0;         // g: between two messages of a rank, at least
  double gapPerByte = 0;  // G: per byte of a message
  // The processors move the bytes, as with TCP: they do not reduce meanwhile.
  bool byProcessor = false;
  // Then how many times gapPerByte the sender of a byte takes; its receiver
  // takes the rest of two. Over loopback the sender runs the receiver's side of
  // the protocol as well.
  double sending = 1;
};

// A network of hosts with `ranksPerHost` ranks each, rank by rank.
struct NetworkParameters {
  LinkParameters between;  // hosts; all, if each has one rank
  LinkParameters inside;   // a host
  int ranksPerHost = 1;
  // Processors that the ranks of a host share; 0: each has its own.
  int coresPerHost = 0;
  // Seconds of a processor for each rank on it that looks for a message in vain
  // before the one that has something to do has its turn.
  double switching = 0;
  // Seconds of a processor for a copy or a reduction of any length; counted
  // where they are shared.
  double localStep = 0;
  double reducePerByte = 0;
  double copyPerByte = 0;

  // Of a job of `size`: how many are on the rank's host. The last host may have
  // fewer than others.
  int ranksBeside(int rank, int size) const {
    return std::min(ranksPerHost, size - rank / ranksPerHost * ranksPerHost);
  }
  bool sharesProcessor(int rank, int size) const {
    return coresPerHost > 0 && coresPerHost < ranksBeside(rank, size);
  }
};

}  // namespace algorithms
GLOO_NAMESPACE_END
