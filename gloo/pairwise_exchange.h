// Messages between pairs of ranks, as an object: for measurements.
#pragma once

#include <memory>

#include "gloo/algorithm.h"
#include "gloo/config.h"
#include "gloo/internal/persistent.h"

GLOO_NAMESPACE_BEGIN

// Rank r exchanges numBytes / numDestinations bytes of its own memory with each
// of the ranks r ^ 1, r ^ 2, r ^ 4, ...: numDestinations of them, and the
// number of ranks is a multiple of two to that power. All ranks construct their
// objects on a context in the same order. One thread at a time. Errors as for
// alltoallv(), also where two ranks disagree about numBytes / numDestinations.
class GLOO_API PairwiseExchange : public Algorithm {
 public:
  PairwiseExchange(const std::shared_ptr<Context>& context, int numBytes,
                   int numDestinations);
  ~PairwiseExchange() noexcept(false) override;

  void run() override;

 private:
  std::unique_ptr<internal::Persistent> persistent_;
};

GLOO_NAMESPACE_END
