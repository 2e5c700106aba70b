#include "algorithms/simulate/processors.h"

#include <algorithm>

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {
namespace {

// 0 to size - 1, those far apart next to each other: by the bits of what a
// number in turn is, the lowest first.
std::vector<int> scattered(int size) {
  const int bits = ceilLog2(size);
  std::vector<int> numbers;
  for (int i = 0; i < 1 << bits; i++) {
    int number = 0;
    for (int bit = 0; bit < bits; bit++) {
      number = 2 * number + (i >> bit & 1);
    }
    if (number < size) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

}  // namespace

Processors::Processors(const Scenario& scenario)
    : ranksPerHost_(scenario.network.ranksPerHost),
      // No host has more ranks than the first.
      cores_(scenario.network.sharesProcessor(0, scenario.job.size)
                 ? scenario.network.coresPerHost
                 : 0),
      switching_(ticksOf(scenario.network.switching)) {
  if (cores_ == 0) {
    return;
  }
  const int size = scenario.job.size;
  waits_.resize(static_cast<size_t>(size));
  places_.resize(static_cast<size_t>(size));
  for (int first = 0; first < size; first += ranksPerHost_) {
    Host host;
    host.shared = scenario.network.sharesProcessor(first, size);
    host.free = cores_;
    host.since = -switching_;
    for (const int index :
         scattered(scenario.network.ranksBeside(first, size))) {
      places_[static_cast<size_t>(first + index)] =
          static_cast<int>(host.circle.size());
      waits_[static_cast<size_t>(first + index)] = host.shared;
      host.circle.push_back(first + index);
    }
    host.last = static_cast<int>(host.circle.size()) - 1;
    hosts_.push_back(std::move(host));
  }
}

Processors::Asked Processors::askedAt(const Host& host, Tick now) const {
  const Tick each = switching_ / host.free;
  const Tick asked =
      each > 0 ? std::max<Tick>(1, (now - host.since + each - 1) / each) : 1;
  const auto ranks = static_cast<Tick>(host.circle.size());
  return {static_cast<int>((host.last + asked) % ranks),
          std::max(now, host.since + asked * each), each};
}

Processors::Turn Processors::turnOf(const Host& host, int place,
                                    Tick now) const {
  const Asked asked = askedAt(host, now);
  const auto ranks = static_cast<int>(host.circle.size());
  const int before = (place - asked.place + ranks) % ranks;
  return {host.circle[static_cast<size_t>(place)],
          asked.time + before * asked.each, host.changes};
}

std::optional<Processors::Turn> Processors::want(int rank, Tick now) {
  Host& host = hostOf(rank);
  const int place = placeOf(rank);
  if (!host.wanting.insert(place).second || host.free == 0) {
    return std::nullopt;
  }
  return turnOf(host, place, now);
}

bool Processors::take(const Turn& turn) {
  Host& host = hostOf(turn.rank);
  if (host.free == 0 || host.changes != turn.change) {
    return false;
  }
  host.last = placeOf(turn.rank);
  host.since = turn.time;
  host.wanting.erase(host.last);
  host.free--;
  host.changes++;
  waits_[static_cast<size_t>(turn.rank)] = false;
  return true;
}

void Processors::yield(int rank, Tick now) {
  if (cores_ == 0 || !hostOf(rank).shared) {
    return;
  }
  Host& host = hostOf(rank);
  host.last = placeOf(rank);
  host.since = now;
  host.free++;
  host.changes++;
  waits_[static_cast<size_t>(rank)] = true;
}

std::optional<Processors::Turn> Processors::next(int rank, Tick now) const {
  if (cores_ == 0) {
    return std::nullopt;
  }
  const Host& host = hostOf(rank);
  if (!host.shared || host.free == 0 || host.wanting.empty()) {
    return std::nullopt;
  }
  const auto after = host.wanting.lower_bound(askedAt(host, now).place);
  return turnOf(
      host, after != host.wanting.end() ? *after : *host.wanting.begin(), now);
}

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
