#include "algorithms/selection.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "algorithms/collective_names.h"
#include "algorithms/cost.h"
#include "algorithms/host_work.h"
#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Not where the hosts are not known.
bool onOneHost(const std::vector<int>& hostOfRank) {
  return !hostOfRank.empty() &&
         std::all_of(hostOfRank.begin(), hostOfRank.end(),
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
  const auto collective = findCollective(name);
  if (!collective) {
    throw InvalidOperationException("GLOO_ALGORITHM: " + noCollective(name));
  }
  return *collective;
}

}  // namespace

Selection::Selection(const internal::Profile& profile, int size,
                     const std::string& transport)
    : tuning_(shippedTuning(transport, size, onOneHost(profile.hostOfRank))),
      size_(size),
      segmentBytes_(static_cast<size_t>(profile.segmentBytes)) {
  if (profile.hostOfRank.size() == static_cast<size_t>(size)) {
    hosts_ = std::make_shared<const HostMap>(profile.hostOfRank);
  }
  tuning_.network.coresPerHost = static_cast<int>(profile.cores);
  parseForced(profile.forced);
  if (!profile.tuning.empty()) {
    applyTuningFile(profile.tuning, transport, size, tuning_);
  }
}

Selection::Selection(Tuning tuning, int size, size_t segmentBytes)
    : tuning_(std::move(tuning)),
      size_(size),
      segmentBytes_(segmentBytes),
      hosts_(std::make_shared<const HostMap>(
          HostMap::ofEqualHosts(size, tuning_.network.ranksPerHost))) {}

Selection::Selection(const NetworkParameters& network, int size,
                     size_t segmentBytes)
    : Selection(Tuning{network}, size, segmentBytes) {}

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

// Null: it knows none that works.
const AlgorithmInfo* Selection::fromTable(Collective collective,
                                          const Setting& setting,
                                          size_t bytes) const {
  const auto it = tuning_.best.find(collective);
  if (it == tuning_.best.end()) {
    return nullptr;
  }
  const AlgorithmInfo* found = nullptr;
  for (const TableRow& row : it->second) {
    found = row.bytes <= bytes ? row.algorithm : found;
  }
  return found != nullptr && found->offers(setting) ? found : nullptr;
}

// Whether ranks of a host share processors.
bool Selection::isCrowded(const Setting& setting) const {
  const int cores = tuning_.network.coresPerHost;
  return setting.hosts != nullptr && cores > 0 &&
         setting.hosts->lanes() > cores;
}

// Whether there are links of both kinds.
bool Selection::isMixed(const Setting& setting) {
  return setting.hosts != nullptr && setting.hosts->isMixed();
}

// What of an algorithm's work is inside hosts; of one that does not know them,
// as far as its ranks happen to share one: of the ranks that send most to
// other hosts, and of those that send most inside.
std::vector<Work> Selection::insideOf(const AlgorithmInfo& algorithm,
                                      const Work& all, const Setting& setting,
                                      size_t bytes, size_t elementSize) const {
  const Work known{all.insideRounds, all.insideMoved, 0, all.insideMessages};
  if (!isMixed(setting) || known.rounds > 0 || bytes == 0) {
    return {known};
  }
  const HostWork host = busiestHost(algorithm, setting, bytes, elementSize,
                                    bytes, tuning_.network);
  const double rounds = all.rounds * (1 - host.crossingMessages);
  return {{rounds, all.moved * (1 - host.crossingMoved), 0,
           all.messages * (1 - host.crossingMessages)},
          {rounds, all.moved * host.insideMoved, 0,
           all.messages * host.insideMessages}};
}

// What it takes where ranks share what the estimate takes for theirs alone:
// their host's network card, and its processors. Of these, p can do no more
// than p things at once and find all that are ready: R. L. Graham, "Bounds on
// Multiprocessing Timing Anomalies", SIAM J. Appl. Math. 17(2), 1969.
// `carried`: for how long the estimate has the rank busy while the card is.
double Selection::onHosts(const Choice& choice, const Setting& setting,
                          size_t bytes, size_t elementSize,
                          double carried) const {
  const NetworkParameters& network = tuning_.network;
  const bool crowded = isCrowded(setting);
  if (bytes == 0 || !(crowded || isMixed(setting))) {
    return choice.seconds;
  }
  const HostWork host = busiestHost(*choice.algorithm, setting, bytes,
                                    elementSize, choice.segmentBytes, network);
  const double chain =
      choice.seconds + std::max(0.0, host.cardSeconds - carried);
  if (!crowded) {
    return chain;
  }
  // That bound is of the worst order. Three quarters of what it has for the
  // chain are nearest to what is measured.
  constexpr double kOfWorst = 0.75;
  const double cores = network.coresPerHost;
  return std::max(chain, host.processorSeconds / cores +
                             kOfWorst * (1 - 1 / cores) * chain);
}

// What is hardly longer than a segment is not worth two. Ranks that share cores
// take turns least often with long segments, and yet need several of them: who
// waits for a whole vector has nothing to do (measured over loopback TCP with
// 2, 4 and 8 ranks on 2 cores, segments of 64 KiB to 1 MiB).
size_t Selection::longestSegment(const Work& work, size_t bytes) const {
  constexpr size_t kSegments = 16;
  const size_t least = work.reduced > 0 ? tuning_.reducedSegmentBytes
                                        : tuning_.shortSegmentBytes;
  size_t usual = tuning_.segmentBytes;
  if (least > 0) {
    const size_t multiple = std::max<size_t>(1, bytes / kSegments / least);
    usual = std::min(usual, multiple * least);
  }
  return bytes > usual && bytes - usual < usual / 4 ? bytes : usual;
}

// What a rank takes for itself whose work is `inside` its host in part.
Selection::Alone Selection::alone(const AlgorithmInfo& algorithm,
                                  const Work& all, const Work& inside,
                                  const Setting& setting, size_t bytes,
                                  size_t maxSegmentBytes) const {
  Work work = all;  // on the slowest links
  work.rounds -= inside.rounds;
  work.moved -= inside.moved;
  work.messages -= inside.messages;
  work.bothWays = inside.moved > 0 ? 0 : all.bothWays;
  const NetworkParameters& network = tuning_.network;
  const Costs costs{
      size_ > network.ranksPerHost ? network.between : network.inside,
      network.reducePerByte, network.copyPerByte};
  Work cut = work;
  if (isCrowded(setting)) {
    // Who waits for a pipeline to fill leaves its processor to others, whom
    // short segments would have take turns more often.
    cut.fill = 0;
  }
  const size_t limit = std::max<size_t>(1, maxSegmentBytes);
  const size_t segment =
      segmentBytes_ != 0
          ? std::min(segmentBytes_, limit)
          : bestSegment(cut, bytes,
                        std::min(limit, longestSegment(work, bytes)), costs);
  return {
      {&algorithm, segment,
       costOf(work, bytes, segment, costs) +
           costOf(inside, bytes, segment, {network.inside, 0, 0}),
       windowFor(work, bytes, segment, costs),
       algorithm.blocks != nullptr ? stripFor(size_, costs) : 0},
      carrying(work, bytes, costs.link) +
          std::max(work.rounds, work.messages) * costs.link.gap +
          // Who does not know the hosts sends inside while others of its
          // host use the card.
          (all.insideRounds > 0 ? 0 : carrying(inside, bytes, network.inside))};
}

Choice Selection::estimate(const AlgorithmInfo& algorithm,
                           const Setting& setting, size_t bytes,
                           size_t maxSegmentBytes, size_t elementSize) const {
  const Work all = algorithm.work(setting);
  Choice slowest;
  for (const Work& inside :
       insideOf(algorithm, all, setting, bytes, elementSize)) {
    Alone rank = alone(algorithm, all, inside, setting, bytes, maxSegmentBytes);
    rank.choice.seconds =
        onHosts(rank.choice, setting, bytes, elementSize, rank.carried);
    if (slowest.algorithm == nullptr || rank.choice.seconds > slowest.seconds) {
      slowest = rank.choice;
    }
  }
  return slowest;
}

Choice Selection::choose(Collective collective, const Setting& setting,
                         size_t bytes, const char* forced,
                         size_t maxSegmentBytes, size_t elementSize) const {
  const auto it = forced_.find(collective);
  const AlgorithmInfo* wish = it != forced_.end() ? it->second
                              : forced != nullptr
                                  ? &wanted(collective, forced, "algorithm")
                                  : nullptr;
  if (wish != nullptr) {
    if (!wish->offers(setting)) {
      throw InvalidOperationException(
          MakeString(nameOf(collective), " by ", wish->name,
                     " does not work for ", setting.size, " ranks",
                     setting.hosts != nullptr
                         ? MakeString(" on ", setting.hosts->hosts(), " hosts")
                         : " whose hosts are not known"));
    }
    return estimate(*wish, setting, bytes, maxSegmentBytes, elementSize);
  }
  if (const AlgorithmInfo* known = fromTable(collective, setting, bytes)) {
    return estimate(*known, setting, bytes, maxSegmentBytes, elementSize);
  }
  Choice best;
  for (const AlgorithmInfo& info : algorithmsOf(collective)) {
    if (info.byNameOnly || !info.offers(setting)) {
      continue;
    }
    const Choice choice =
        estimate(info, setting, bytes, maxSegmentBytes, elementSize);
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
