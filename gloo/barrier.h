// Waits for all ranks.
#pragma once

#include "gloo/algorithm.h"
#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class BarrierOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;
};

// Returns when every rank has called it. Threads and errors as for
// allreduce().
GLOO_API void barrier(const BarrierOptions& opts);

// Base of the barriers that are objects.
class GLOO_API Barrier : public Algorithm {
 public:
  explicit Barrier(const std::shared_ptr<Context>& context);
  ~Barrier() noexcept(false) override;
};

GLOO_NAMESPACE_END
