// Which requests are direct (algorithms/direct.h), and what they come to in
// lanes: depends on values that are equal on all ranks.
#pragma once

#include <cstddef>

#include "algorithms/direct_parameters.h"
#include "algorithms/plan.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Whether there are direct algorithms of it.
bool hasDirect(Collective collective);

// Whether there is one for it, in lanes of so many ranks with such slots:
// depends on values that are equal on all ranks.
bool offersDirect(const Request& request, int ranks, size_t slotBytes);

// What a request comes to in the lanes of a context. All in bytes.
struct DirectSizes {
  size_t vector = 0;  // or of a rank's part
  size_t shared = 0;  // sharedBytes()
  size_t unit = 1;    // see DirectRun::whole()
  // What the parameters say, for such slots and so many ranks.
  size_t chunk = 0;
  size_t whole = 0;         // a reduction up to here is not cut into slices
  size_t leastInPlace = 0;  // of a reduction
};
DirectSizes sizesOf(const Request& request, const DirectParameters& parameters,
                    int ranks, size_t slotBytes, bool crowded);

}  // namespace algorithms
GLOO_NAMESPACE_END
