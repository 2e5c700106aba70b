// Allgather as an object, around a ring; short vectors as allgather() does it.
#pragma once

#include <memory>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/config.h"
#include "gloo/internal/persistent.h"

GLOO_NAMESPACE_BEGIN

// outPtr has room for `count` elements of every input of every rank: it ends as
// the inputs of rank 0 in their order, then those of rank 1, and so on. All
// ranks have as many inputs, and construct their objects on a context in the
// same order. One thread at a time. Errors as for allgather().
template <typename T>
class AllgatherRing : public Algorithm {
 public:
  AllgatherRing(const std::shared_ptr<Context>& context,
                const std::vector<const T*>& inPtrs, T* outPtr, int count)
      : Algorithm(context),
        persistent_(internal::Persistent::allgather(
            context, std::vector<const void*>(inPtrs.begin(), inPtrs.end()),
            outPtr, internal::shapeOf<T>("ring", count))) {}

  void run() override { persistent_->run(); }

 private:
  std::unique_ptr<internal::Persistent> persistent_;
};

GLOO_NAMESPACE_END
