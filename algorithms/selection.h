// Which algorithm a call runs: the cheapest by a cost model, or what the
// profile or the caller asks for. A function of values that are equal on all
// ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "algorithms/catalogue.h"
#include "gloo/internal/profile.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Hockney's model with a reduction term: seconds per message, per byte on the
// way, per byte reduced. R. Hockney, "The communication challenge for MPP",
// Parallel Computing 20(3), 1994.
struct LinkCost {
  double alpha = 0;
  double beta = 0;
  double gamma = 0;
};

// Immutable; thread-safe.
class Selection {
 public:
  // Throws InvalidOperationException, naming the variable, if GLOO_ALGORITHM
  // or the tuning file of the profile make no sense.
  Selection(const internal::Profile& profile, int size);

  // The algorithm for `bytes` in total (the vector, or all ranks' blocks
  // together). `forced`: the caller's wish by name; null: none. The
  // environment's wish goes before it. Throws InvalidOperationException if the
  // wanted algorithm does not exist or does not work for this size.
  const AlgorithmInfo& choose(Collective collective, const Setting& setting,
                              size_t bytes, const char* forced) const;

  // Estimated seconds.
  double cost(const AlgorithmInfo& algorithm, const Setting& setting,
              size_t bytes) const;

  // Segment length of a call whose caller allows at most `maxSegmentBytes`.
  size_t segmentBytes(size_t maxSegmentBytes) const;

 private:
  void parseForced(const std::string& text);
  void parseTuning(const std::string& text);

  LinkCost link_;
  size_t segmentBytes_;
  std::map<Collective, const AlgorithmInfo*> forced_;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
