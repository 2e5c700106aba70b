// Element-wise reduction, of which each rank gets a part.
#pragma once

#include <memory>
#include <vector>

#include "gloo/algorithm.h"
#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/internal/persistent.h"
#include "gloo/math.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class ReduceScatterOptions : public internal::CollectiveOptions {
 public:
  using Func = internal::ReduceFunction;

  using CollectiveOptions::CollectiveOptions;

  // P parts, in the order of the ranks that get them.
  using CollectiveOptions::setInput;
  // With an input: this rank's part. Without one: in place, P parts; the result
  // is at the front of them, and what follows is undefined. The output may be
  // the beginning of the input: then as without one.
  using CollectiveOptions::setOutput;

  using CollectiveOptions::setMaxSegmentSize;
  using CollectiveOptions::setReduceFunction;
};

// The vectors of all ranks are reduced as by allreduce(); rank r's output ends
// as part r of the result. Element type, count, reduce function and segment
// size agree on all ranks. Memory, threads and errors as for allreduce(). See
// reduce_scatterv.h for parts of different lengths.
GLOO_API void reduce_scatter(const ReduceScatterOptions& opts);

// As an object. Every one of `ptrs` (count elements each) is an input. Rank r
// ends with its recvElems[r] elements of the result at the front of each of
// them; what follows is undefined. recvElems is equal on all ranks, and adds up
// to the count. All ranks construct their objects on a context in the same
// order. One thread at a time. Errors as for allreduce().
template <typename T>
class ReduceScatterHalvingDoubling : public Algorithm {
 public:
  ReduceScatterHalvingDoubling(
      const std::shared_ptr<Context>& context, const std::vector<T*>& ptrs,
      int count, const std::vector<int>& recvElems,
      const ReductionFunction<T>* fn = ReductionFunction<T>::sum)
      : Algorithm(context),
        persistent_(internal::Persistent::reduceScatter(
            context, internal::untyped(ptrs),
            internal::shapeOf<T>("recursive_halving", count), recvElems,
            internal::reduceFunctionOf(fn))) {}

  void run() override { persistent_->run(); }

 private:
  std::unique_ptr<internal::Persistent> persistent_;
};

GLOO_NAMESPACE_END
