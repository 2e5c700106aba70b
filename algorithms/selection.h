// Which algorithm a call runs and in what segments: the cheapest by a cost
// model, or what the profile or the caller asks for. A function of values that
// are equal on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/hosts.h"
#include "algorithms/tuning.h"
#include "gloo/internal/profile.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// An algorithm, how long its segments and strips are at most, how many actions
// are in view (see ExpandOptions), and what the model expects.
struct Choice {
  const AlgorithmInfo* algorithm = nullptr;
  size_t segmentBytes = 0;
  double seconds = 0;
  int window = 0;
  size_t stripBytes = 0;
};

// Immutable; thread-safe.
class Selection {
 public:
  // `transport`: the kind of the ranks' devices, which is equal on all of them;
  // see shippedTuning. Throws InvalidOperationException, naming the variable,
  // if GLOO_ALGORITHM or the tuning file of the profile make no sense.
  Selection(const internal::Profile& profile, int size,
            const std::string& transport);

  // By the model alone, for this network, whose hosts are alike and in the
  // order of their ranks. `segmentBytes`: of all algorithms; 0: the model
  // chooses.
  Selection(Tuning tuning, int size, size_t segmentBytes = 0);
  Selection(const NetworkParameters& network, int size,
            size_t segmentBytes = 0);

  // For settings; null where the hosts are not known.
  const HostMap* hosts() const { return hosts_.get(); }

  // What runs a call of `bytes` in total (the vector, or all ranks' blocks
  // together) whose caller allows segments of at most `maxSegmentBytes`.
  // `elementSize`: in bytes; blocks that are shorter are not sent.
  // `forced`: the caller's wish by name; null: none. The environment's wish
  // goes before it. Throws InvalidOperationException if the wanted algorithm
  // does not exist or does not work for this size and these hosts.
  Choice choose(Collective collective, const Setting& setting, size_t bytes,
                const char* forced, size_t maxSegmentBytes,
                size_t elementSize = 1) const;

  // Whether the environment or the caller asks for an algorithm.
  bool isForced(Collective collective, const char* forced) const {
    return forced != nullptr || forced_.count(collective) != 0;
  }

  // The same for one algorithm that offers the setting.
  Choice estimate(const AlgorithmInfo& algorithm, const Setting& setting,
                  size_t bytes, size_t maxSegmentBytes,
                  size_t elementSize = 1) const;

  // Of calls that are not forced, where all ranks share memory.
  const DirectParameters& direct() const { return tuning_.direct; }

 private:
  static bool isMixed(const Setting& setting);
  std::vector<Work> insideOf(const AlgorithmInfo& algorithm, const Work& all,
                             const Setting& setting, size_t bytes,
                             size_t elementSize) const;
  struct Alone {
    Choice choice;
    double carried = 0;  // seconds of it, while its host's card is busy
  };
  Alone alone(const AlgorithmInfo& algorithm, const Work& all,
              const Work& inside, const Setting& setting, size_t bytes,
              size_t maxSegmentBytes) const;
  bool isCrowded(const Setting& setting) const;
  size_t longestSegment(const Work& work, size_t bytes) const;
  double onHosts(const Choice& choice, const Setting& setting, size_t bytes,
                 size_t elementSize, double carried) const;
  void parseForced(const std::string& text);
  const AlgorithmInfo* fromTable(Collective collective, const Setting& setting,
                                 size_t bytes) const;
  Tuning tuning_;
  const int size_;
  const size_t segmentBytes_;  // 0: by the model
  std::shared_ptr<const HostMap> hosts_;
  std::map<Collective, const AlgorithmInfo*> forced_;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
