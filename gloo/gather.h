// All ranks' vectors to the root, equally long.
#pragma once

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class GatherOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;

  // The root may set none, and have its part in the output already.
  using CollectiveOptions::setInput;
  // The root's: P times the input, in the order of ranks. Others' may be
  // anything.
  using CollectiveOptions::setOutput;
  using CollectiveOptions::setRoot;
};

// The root's output ends as the inputs one after another, in the order of
// ranks. Element size, count and root agree on all ranks. Memory, threads and
// errors as for allreduce(). See gatherv.h for vectors of different lengths.
GLOO_API void gather(const GatherOptions& opts);

GLOO_NAMESPACE_END
