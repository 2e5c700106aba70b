// The network of a simulation: who is held up by whom on the way.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/simulate/simulate.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {

// Time in picoseconds: whole numbers, so that the order of events is the same
// on every machine. 2^63 of them are 106 days.
using Tick = int64_t;

// What is longer is refused: InvalidOperationException.
constexpr double kMostSeconds = 1e6;

Tick ticksOf(double seconds);
double secondsOf(Tick ticks);

// LogGP, with a port of each rank for sending and one for receiving, and such a
// pair of each host for what passes between hosts. Each is used in the order in
// which it is asked. Where the processors move the bytes, that is part of their
// work on a message, and ranks' ports hold up nothing but its gap. One thread.
class Links {
 public:
  // Throws InvalidOperationException for parameters that are none.
  explicit Links(const Scenario& scenario);

  // Of the message's CPU work on the rank's side, which sends it or receives
  // it.
  Tick handling(int rank, int peer, size_t bytes, bool sends) const;
  // Of local work.
  Tick reducing(int rank, size_t bytes) const;
  Tick copying(int rank, size_t bytes) const;

  // When a message leaves a sender who has done its work on it at `now`, and
  // reaches its receiver's port.
  struct Departure {
    Tick begin = 0;
    Tick sent = 0;     // the last byte has left
    Tick first = 0;    // the first byte is there
    Tick arrived = 0;  // the last byte is there, if nothing holds it up
  };
  // To be called in the order of `now`.
  Departure depart(int from, int to, size_t bytes, Tick now);
  // When the last byte has passed the receiver's port. To be called in the
  // order of `arrived`.
  Tick land(int from, int to, size_t bytes, const Departure& departure);

 private:
  // Whether the ports of both ranks' hosts are used.
  bool crosses(int a, int b) const {
    return network_.ranksPerHost > 1 && hostOf(a) != hostOf(b);
  }
  int hostOf(int rank) const { return rank / network_.ranksPerHost; }
  const LinkParameters& link(int a, int b) const {
    return network_.ranksPerHost > 1 && !crosses(a, b) ? network_.inside
                                                       : network_.between;
  }
  Tick local(int rank, double seconds) const;
  // How long the rank's port is busy with the message's bytes.
  Tick bodyOf(int rank, int peer, size_t bytes) const;
  double factor(int rank) const { return rank == slowRank_ ? slowFactor_ : 1; }
  Tick& port(std::vector<Tick>& own, std::vector<Tick>& hosts, int rank,
             bool crosses) const {
    return crosses ? hosts[static_cast<size_t>(hostOf(rank))]
                   : own[static_cast<size_t>(rank)];
  }

  const NetworkParameters network_;
  const int size_;
  const int slowRank_;
  const double slowFactor_;
  // When each is free again.
  std::vector<Tick> sending_;
  std::vector<Tick> receiving_;
  std::vector<Tick> hostSending_;
  std::vector<Tick> hostReceiving_;
};

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
