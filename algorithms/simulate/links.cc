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
  constexpr double kMostSeconds = 1e6;
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
  return static_cast<Tick>(std::llround(seconds * kTicksPerSecond));
}

double secondsOf(Tick ticks) {
  return static_cast<double>(ticks) / kTicksPerSecond;
}

Links::Links(const Scenario& scenario)
    : network_(scenario.network),
      slowRank_(scenario.slowRank),
      slowFactor_(scenario.slowFactor) {
  checkLink(network_.between);
  checkLink(network_.inside);
  checkTime("a reduction per byte", network_.reducePerByte);
  checkTime("a copy per byte", network_.copyPerByte);
  if (network_.ranksPerHost < 1) {
    throw InvalidOperationException("simulator: a host has at least one rank");
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

Tick Links::overhead(int rank, int peer) const {
  return ticksOf(link(rank, peer).overhead * factor(rank));
}

Tick Links::reducing(int rank, size_t bytes) const {
  return ticksOf(network_.reducePerByte * static_cast<double>(bytes) *
                 factor(rank));
}

Tick Links::copying(int rank, size_t bytes) const {
  return ticksOf(network_.copyPerByte * static_cast<double>(bytes) *
                 factor(rank));
}

Links::Departure Links::depart(int from, int to, size_t bytes, Tick now) {
  const LinkParameters& l = link(from, to);
  const double slow = factor(from);
  const Tick body = ticksOf(l.gapPerByte * static_cast<double>(bytes) * slow);
  Tick& free = port(sending_, hostSending_, from, crosses(from, to));
  const Tick begin = std::max(now, free);
  free = begin + std::max(body, ticksOf(l.gap * slow));
  const Tick latency = ticksOf(l.latency);
  return {begin, begin + body, begin + latency, begin + body + latency};
}

Tick Links::land(int from, int to, size_t bytes, const Departure& departure) {
  const LinkParameters& l = link(from, to);
  const double slow = factor(to);
  const Tick body = ticksOf(l.gapPerByte * static_cast<double>(bytes) * slow);
  Tick& free = port(receiving_, hostReceiving_, to, crosses(from, to));
  const Tick begin = std::max(departure.first, free);
  const Tick end = std::max(begin + body, departure.arrived);
  free = std::max(end, begin + ticksOf(l.gap * slow));
  return end;
}

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
