// One vector of the root's for each rank.
#pragma once

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class ScatterOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;

  // The root's: one vector for each rank, in the order of ranks. Others' may be
  // anything.
  using CollectiveOptions::setInputs;
  // The root needs none: its part then stays where it is.
  using CollectiveOptions::setOutput;
  using CollectiveOptions::setRoot;
};

// Rank r's output ends as inputs[r] of the root. Element size, count and root
// agree on all ranks. The root's output may be its own input. Memory, threads
// and errors as for allreduce().
GLOO_API void scatter(const ScatterOptions& opts);

GLOO_NAMESPACE_END
