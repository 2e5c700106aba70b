// Element-wise reduction over the vectors of all ranks, for one of them.
#pragma once

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/math.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class ReduceOptions : public internal::CollectiveOptions {
 public:
  using Func = internal::ReduceFunction;

  using CollectiveOptions::CollectiveOptions;

  // No input: the output is the input, on the other ranks as well.
  using CollectiveOptions::setInput;
  // Only the root's is written; others' may be anything, if they set an input.
  using CollectiveOptions::setOutput;

  using CollectiveOptions::setMaxSegmentSize;
  using CollectiveOptions::setReduceFunction;
  using CollectiveOptions::setRoot;
};

// The root's output ends as the element-wise reduction over all P ranks:
//   out[i] = in_0[i] + ... + in_{P-1}[i],   0 <= i < elements
//
// Shape    Element type, `elements` (a count, not bytes), root, reduce
//          function and segment size agree on all ranks.
// Memory   The caller owns all vectors until return. Other ranks' outputs are
//          not touched.
// Reduce   Associative and commutative; the operand with the lowest
//          contribution is the left one.
// Threads and errors as for allreduce().
GLOO_API void reduce(const ReduceOptions& opts);

GLOO_NAMESPACE_END
