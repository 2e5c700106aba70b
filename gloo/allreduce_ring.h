// Allreduce as an object, around a ring; short vectors as allreduce() does it.
#pragma once

#include <memory>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/config.h"
#include "gloo/internal/persistent.h"

GLOO_NAMESPACE_BEGIN

// Every one of `ptrs` (count elements each) is an input, and gets the result.
// All ranks construct their objects on a context in the same order. One thread
// at a time. Errors as for allreduce().
template <typename T>
class AllreduceRing : public internal::PersistentAllreduce<T> {
 public:
  AllreduceRing(const std::shared_ptr<Context>& context,
                const std::vector<T*>& ptrs, int count,
                const ReductionFunction<T>* fn = ReductionFunction<T>::sum)
      : internal::PersistentAllreduce<T>("ring", context, ptrs, count, fn) {}
};

GLOO_NAMESPACE_END
