// A part of each rank's vector to each rank, all equally long.
#pragma once

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class AlltoallOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;

  // P parts, in the order of the ranks they are for. None: the output is the
  // input; that takes a copy.
  using CollectiveOptions::setInput;
  // P parts, in the order of the ranks they are from.
  using CollectiveOptions::setOutput;
};

// Part s of rank r's output ends as part r of rank s's input. Element size and
// count agree on all ranks. Memory, threads and errors as for allreduce(). See
// alltoallv.h for parts of different lengths.
GLOO_API void alltoall(const AlltoallOptions& opts);

GLOO_NAMESPACE_END
