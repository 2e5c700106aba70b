// A reduction among the vectors of this process, as an object.
#pragma once

#include <memory>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/config.h"
#include "gloo/internal/persistent.h"

GLOO_NAMESPACE_BEGIN

// Every one of `ptrs` (count elements each) is an input, and gets the result.
// Sends nothing. One thread at a time.
template <typename T>
class AllreduceLocal : public internal::PersistentAllreduce<T> {
 public:
  AllreduceLocal(const std::shared_ptr<Context>& context,
                 const std::vector<T*>& ptrs, int count,
                 const ReductionFunction<T>* fn = ReductionFunction<T>::sum)
      : internal::PersistentAllreduce<T>(nullptr, context, ptrs, count, fn) {}
};

GLOO_NAMESPACE_END
