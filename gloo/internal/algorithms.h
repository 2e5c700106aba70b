// What selection chooses from, for programs that measure the algorithms.
// Implemented by algorithms/.
#pragma once

#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
class Context;

namespace internal {

// Names as in GLOO_ALGORITHM.
struct AlgorithmNames {
  std::string collective;
  std::vector<std::string> algorithms;
  // Unless one of them is asked for, it runs in memory that all ranks have
  // mapped (as far as the profile says).
  bool isDirect = false;
};

// All collectives with those of their algorithms that work for the context's
// ranks and hosts; equal on all ranks.
GLOO_API std::vector<AlgorithmNames> algorithmNames(Context& context);

}  // namespace internal
GLOO_NAMESPACE_END
