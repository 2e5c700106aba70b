// Broadcast as an object.
#pragma once

#include <memory>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/config.h"
#include "gloo/internal/persistent.h"

GLOO_NAMESPACE_BEGIN

// ptrs[rootPointerRank] (count elements) of rank `rootRank` to all of `ptrs` on
// all ranks. All ranks construct their objects on a context in the same order.
// One thread at a time. Errors as for broadcast().
template <typename T>
class BroadcastOneToAll : public Algorithm {
 public:
  BroadcastOneToAll(const std::shared_ptr<Context>& context,
                    const std::vector<T*>& ptrs, size_t count, int rootRank = 0,
                    int rootPointerRank = 0)
      : Algorithm(context) {
    auto shape = internal::shapeOf<T>(nullptr, count);
    shape.root = rootRank;
    persistent_ = internal::Persistent::broadcast(
        context, internal::untyped(ptrs), shape, rootPointerRank);
  }

  void run() override { persistent_->run(); }

 private:
  std::unique_ptr<internal::Persistent> persistent_;
};

GLOO_NAMESPACE_END
