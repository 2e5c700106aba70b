// All ranks' vectors to all ranks, equally long.
#pragma once

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class AllgatherOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;

  // None: a rank's part is in its output already.
  using CollectiveOptions::setInput;
  // P times the input, in the order of ranks.
  using CollectiveOptions::setOutput;
};

// Every rank's output ends as the inputs one after another, in the order of
// ranks. Element size and count agree on all ranks. Memory, threads and errors
// as for allreduce(). See allgatherv.h for vectors of different lengths.
GLOO_API void allgather(const AllgatherOptions& opts);

GLOO_NAMESPACE_END
