// What a rank makes of its own vectors before it has to do with others.
#pragma once

#include <functional>

#include "algorithms/reducer.h"
#include "gloo/internal/options.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// target[i] = vectors[0][i] (op) vectors[1][i] (op) ...; the target may be
// vectors[0]. One vector alone stays where it is: nothing is done. Vectors are
// equally long. `between`, if any, is called after each chunk, and may end it
// by throwing. Throws what the reduce function throws.
void reduceLocally(const Reducer& reduce, const internal::Vectors& vectors,
                   void* target, const std::function<void()>& between = {});

}  // namespace algorithms
GLOO_NAMESPACE_END
