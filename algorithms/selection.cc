#include "algorithms/selection.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "algorithms/cost.h"
#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Measured: TCP over loopback, and a typical Ethernet of 25 Gb/s.
constexpr LinkParameters kOneHost{2e-6, 2e-6, 3e-6, 4e-10};
constexpr LinkParameters kSeveralHosts{16e-6, 2e-6, 3e-6, 4e-10};
constexpr double kReducePerByte = 1e-10;

// Three segments of TCP over loopback, less the head of a frame.
constexpr size_t kSegmentBytes = 196352;

bool onOneHost(const std::vector<int>& hostOfRank) {
  return std::all_of(hostOfRank.begin(), hostOfRank.end(),
                     [&](int host) { return host == hostOfRank.front(); });
}

std::string namesOf(Collective collective) {
  std::string names;
  for (const AlgorithmInfo& info : algorithmsOf(collective)) {
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  return names;
}

const AlgorithmInfo& wanted(Collective collective, std::string_view name,
                            const char* origin) {
  const AlgorithmInfo* info = findAlgorithm(collective, name);
  if (info == nullptr) {
    throw InvalidOperationException(
        MakeString(origin, ": ", nameOf(collective), " has no algorithm '",
                   name, "'; it has ", namesOf(collective)));
  }
  return *info;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

Collective collectiveNamed(const std::string& name) {
  for (const AlgorithmInfo& info : catalogue()) {
    if (nameOf(info.collective) == name) {
      return info.collective;
    }
  }
  throw InvalidOperationException(
      MakeString("GLOO_ALGORITHM: there is no collective '", name, "'"));
}

}  // namespace

Selection::Selection(const internal::Profile& profile, int size)
    : size_(size),
      segmentBytes_(static_cast<size_t>(profile.segmentBytes)),
      longestSegment_(kSegmentBytes) {
  network_.between = kSeveralHosts;
  network_.inside = kOneHost;
  network_.ranksPerHost = onOneHost(profile.hostOfRank) ? size : 1;
  network_.reducePerByte = kReducePerByte;
  parseForced(profile.forced);
  parseTuning(profile.tuning);
}

Selection::Selection(const NetworkParameters& network, int size,
                     size_t segmentBytes)
    : network_(network), size_(size), segmentBytes_(segmentBytes) {}

// "collective=algorithm,..."
void Selection::parseForced(const std::string& text) {
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    item = trimmed(item);
    if (item.empty()) {
      continue;
    }
    const size_t equals = item.find('=');
    if (equals == std::string::npos) {
      throw InvalidOperationException(
          MakeString("GLOO_ALGORITHM: '", item,
                     "' is not of the form collective=algorithm"));
    }
    const Collective collective =
        collectiveNamed(trimmed(item.substr(0, equals)));
    forced_[collective] =
        &wanted(collective, trimmed(item.substr(equals + 1)), "GLOO_ALGORITHM");
  }
}

// Lines "alpha 5e-6", "beta 4e-10", "gamma 1e-10" (seconds, and seconds per
// byte); # starts a comment.
void Selection::parseTuning(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) {
      continue;
    }
    std::istringstream in(line);
    std::string name;
    double value = 0;
    std::string rest;
    if (!(in >> name >> value) || in >> rest || !(value >= 0) ||
        (name != "alpha" && name != "beta" && name != "gamma")) {
      throw InvalidOperationException(
          MakeString("GLOO_TUNING_FILE: cannot read line '", line,
                     "'; expected alpha, beta or gamma and a number >= 0"));
    }
    if (name == "gamma") {
      network_.reducePerByte = value;
    }
    for (LinkParameters* link : {&network_.between, &network_.inside}) {
      if (name == "alpha") {
        // Half of it is the work of both ends.
        *link = {value / 2, value / 4, value / 2, link->gapPerByte};
      } else if (name == "beta") {
        link->gapPerByte = value;
      }
    }
  }
}

Choice Selection::estimate(const AlgorithmInfo& algorithm,
                           const Setting& setting, size_t bytes,
                           size_t maxSegmentBytes) const {
  const Work work = algorithm.work(setting);
  const LinkParameters& link =
      size_ > network_.ranksPerHost ? network_.between : network_.inside;
  const size_t limit = std::max<size_t>(1, maxSegmentBytes);
  const size_t segment =
      segmentBytes_ != 0
          ? std::min(segmentBytes_, limit)
          : bestSegment(work, bytes, std::min(limit, longestSegment_), link,
                        network_.reducePerByte);
  return {&algorithm, segment,
          costOf(work, bytes, segment, link, network_.reducePerByte)};
}

Choice Selection::choose(Collective collective, const Setting& setting,
                         size_t bytes, const char* forced,
                         size_t maxSegmentBytes) const {
  const auto it = forced_.find(collective);
  const AlgorithmInfo* wish = it != forced_.end() ? it->second
                              : forced != nullptr
                                  ? &wanted(collective, forced, "algorithm")
                                  : nullptr;
  if (wish != nullptr) {
    if (!wish->offers(setting)) {
      throw InvalidOperationException(
          MakeString(nameOf(collective), " by ", wish->name,
                     " does not work for ", setting.size, " ranks"));
    }
    return estimate(*wish, setting, bytes, maxSegmentBytes);
  }
  Choice best;
  for (const AlgorithmInfo& info : algorithmsOf(collective)) {
    if (!info.offers(setting)) {
      continue;
    }
    const Choice choice = estimate(info, setting, bytes, maxSegmentBytes);
    if (best.algorithm == nullptr || choice.seconds < best.seconds) {
      best = choice;
    }
  }
  if (best.algorithm == nullptr) {
    throw InvalidOperationException(MakeString(
        nameOf(collective), ": no algorithm for ", setting.size, " ranks"));
  }
  return best;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
