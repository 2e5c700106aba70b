// Element-wise reduction, of which each rank gets a part of any length.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/math.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class ReduceScattervOptions : public internal::CollectiveOptions {
 public:
  using Func = internal::ReduceFunction;

  using CollectiveOptions::CollectiveOptions;

  // counts[r]: elements of the result for rank r; equal on all ranks.
  template <typename T>
  void setInput(T* ptr, const std::vector<size_t>& counts) {
    setCountedInput(ptr, counts);
  }
  template <typename T>
  void setInput(Buffer buffer, const std::vector<size_t>& counts) {
    setCountedInput<T>(std::move(buffer), counts);
  }

  // With an input: this rank's part. It may be the beginning of the input: then
  // as without one.
  using CollectiveOptions::setOutput;
  // Without one: in place. The result is at the front of the vector; what
  // follows is undefined.
  template <typename T>
  void setOutput(T* ptr, const std::vector<size_t>& counts) {
    setCountedOutput(ptr, counts);
  }
  template <typename T>
  void setOutput(Buffer buffer, const std::vector<size_t>& counts) {
    setCountedOutput<T>(std::move(buffer), counts);
  }

  using CollectiveOptions::setMaxSegmentSize;
  using CollectiveOptions::setReduceFunction;
};

// The vectors of all ranks are reduced as by allreduce(); rank r's output ends
// as part r of the result. Element type, counts, reduce function and segment
// size agree on all ranks; counts may be zero. Memory, threads and errors as
// for allreduce().
GLOO_API void reduce_scatterv(const ReduceScattervOptions& opts);

GLOO_NAMESPACE_END
