#include "algorithms/simulate/links.h"

#include <algorithm>
#include <cmath>

#include "gloo/common/error.h"
#include "gloo/common/string.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {
namespace {

constexpr double kTicksPerSecond = 1e12;

void checkTime(const char* what, double seconds) {
  if (!(seconds >= 0 && seconds <= kMostSeconds)) {
    throw InvalidOperationException(MakeString(
        "simulator: ", what, " of ", seconds, " s is not a cost (0 to 1e6)"));
  }
}

void checkLink(const LinkParameters& link) {
  checkTime("a latency", link.latency);
  checkTime("an overhead", link.overhead);
  checkTime("a gap", link.gap);
  checkTime("a gap per byte", link.gapPerByte);
}

}  // namespace

Tick ticksOf(double seconds) {
  if (!(seconds <= kMostSeconds)) {
    throw InvalidOperationException(MakeString(
        "simulator: one step of ", seconds, " s, more than ", kMostSeconds));
  }
  return static_cast<Tick>(std::llround(seconds * kTicksPerSecond));
}

double secondsOf(Tick ticks) {
  return static_cast<double>(ticks) / kTicksPerSecond;
}

Links::Links(const Scenario& scenario)
    : network_(scenario.network),
      size_(scenario.job.size),
      slowRank_(scenario.slowRank),
      slowFactor_(scenario.slowFactor) {
  checkLink(network_.between);
  checkLink(network_.inside);
  checkTime("a reduction per byte", network_.reducePerByte);
  checkTime("a copy per byte", network_.copyPerByte);
  checkTime("a local step", network_.localStep);
  checkTime("switching", network_.switching);
  if (network_.ranksPerHost < 1) {
    throw InvalidOperationException("simulator: a host has at least one rank");
  }
  if (network_.coresPerHost < 0) {
    throw InvalidOperationException(
        "simulator: a host has at least one processor, or 0: as many as ranks");
  }
  if (!(slowFactor_ > 0) || slowFactor_ > 1e6) {
    throw InvalidOperationException(
        "simulator: the factor of the slow rank is not in 0..1e6");
  }
  const auto ranks = static_cast<size_t>(scenario.job.size);
  sending_.resize(ranks);
  receiving_.resize(ranks);
  if (network_.ranksPerHost > 1) {
    hostSending_.resize(ranks);
    hostReceiving_.resize(ranks);
  }
}

Tick Links::handling(int rank, int peer, size_t bytes, bool sends) const {
  const LinkParameters& l = link(rank, peer);
  const double part = sends ? l.sending : 2 - l.sending;
  const double moving =
      l.byProcessor ? part * l.gapPerByte * static_cast<double>(bytes) : 0;
  return ticksOf((l.overhead + moving) * factor(rank));
}

Tick Links::reducing(int rank, size_t bytes) const {
  return local(rank, network_.reducePerByte * static_cast<double>(bytes));
}

Tick Links::copying(int rank, size_t bytes) const {
  return local(rank, network_.copyPerByte * static_cast<double>(bytes));
}

Tick Links::local(int rank, double seconds) const {
  const double step =
      network_.sharesProcessor(rank, size_) ? network_.localStep : 0;
  return ticksOf((step + seconds) * factor(rank));
}

Links::Departure Links::depart(int from, int to, size_t bytes, Tick now) {
  const LinkParameters& l = link(from, to);
  const double slow = factor(from);
  const Tick body = bodyOf(from, to, bytes);
  Tick& free = port(sending_, hostSending_, from, crosses(from, to));
  // A card is busy while the processor moves the bytes to it.
  const Tick begin = std::max(l.byProcessor ? now - body : now, free);
  free = begin + std::max(body, ticksOf(l.gap * slow));
  const Tick latency = ticksOf(l.latency);
  return {begin, begin + body, begin + latency, begin + body + latency};
}

Tick Links::land(int from, int to, size_t bytes, const Departure& departure) {
  const LinkParameters& l = link(from, to);
  const Tick body = bodyOf(to, from, bytes);
  Tick& free = port(receiving_, hostReceiving_, to, crosses(from, to));
  const Tick begin = std::max(departure.first, free);
  const Tick end = std::max(begin + body, departure.arrived);
  free = std::max(end, begin + ticksOf(l.gap * factor(to)));
  return end;
}

Tick Links::bodyOf(int rank, int peer, size_t bytes) const {
  const LinkParameters& l = link(rank, peer);
  return l.byProcessor && !crosses(rank, peer)
             ? 0
             : ticksOf(l.gapPerByte * static_cast<double>(bytes) *
                       factor(rank));
}

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
