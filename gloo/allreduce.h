// Element-wise reduction over the vectors of all ranks.
#pragma once

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/math.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class AllreduceOptions : public internal::CollectiveOptions {
 public:
  using Func = internal::ReduceFunction;

  enum Algorithm : uint8_t {
    UNSPECIFIED = 0,  // the cheapest for size and ranks
    RING = 1,
    BCUBE = 2,
  };

  using CollectiveOptions::CollectiveOptions;

  // Several local vectors are reduced together with those of the other ranks.
  // No input: the outputs are the inputs.
  using CollectiveOptions::setInput;
  using CollectiveOptions::setInputs;
  // Every output gets the result: each in memory of its own.
  using CollectiveOptions::setOutput;
  using CollectiveOptions::setOutputs;

  using CollectiveOptions::setMaxSegmentSize;
  using CollectiveOptions::setReduceFunction;

  // For vectors of more than 16 KiB; shorter ones are not worth dividing.
  void setAlgorithm(Algorithm algorithm) {
    setAlgorithmOfLong(algorithm == RING    ? "ring"
                       : algorithm == BCUBE ? "bcube"
                                            : nullptr);
  }
};

// Every rank ends with the element-wise reduction over all P ranks:
//   out[i] = in_0[i] + ... + in_{P-1}[i],   0 <= i < elements
//
// Shape    Element type, `elements` (a count, not bytes), reduce function,
//          segment size and algorithm agree on all ranks; of an average, which
//          divides by it, the number of local vectors too.
// Memory   The caller owns all vectors until return.
// Reduce   Associative and commutative; the operand with the lowest
//          contribution is the left one; all ranks get the same bits.
// Threads  Blocks. Concurrent calls on one context need distinct tags.
// Errors   InvalidOperationException, before any I/O, if options disagree;
//          IoException on peer loss or deadline: the context is then closed.
// Cost     See docs/algorithms.md; the library chooses by size and ranks.
GLOO_API void allreduce(const AllreduceOptions& opts);

GLOO_NAMESPACE_END
