// What selection chooses from, for programs that measure the algorithms.
// Implemented by algorithms/.
#pragma once

#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// Names as in GLOO_ALGORITHM.
struct AlgorithmNames {
  std::string collective;
  std::vector<std::string> algorithms;
};

// All collectives with those of their algorithms that work for `size` ranks.
GLOO_API std::vector<AlgorithmNames> algorithmNames(int size);

}  // namespace internal
GLOO_NAMESPACE_END
