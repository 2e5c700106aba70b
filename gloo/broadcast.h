// The root's vector to all ranks.
#pragma once

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class BroadcastOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;

  // Only the root's counts; others' may be anything. The root may set an input,
  // an output, or both; an output alone is what it sends.
  using CollectiveOptions::setInput;
  using CollectiveOptions::setOutput;
  using CollectiveOptions::setRoot;
};

// Every rank's output ends as the root's input. Element size, count and root
// agree on all ranks. Memory, threads and errors as for allreduce().
GLOO_API void broadcast(const BroadcastOptions& opts);

GLOO_NAMESPACE_END
