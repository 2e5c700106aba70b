// A part of each rank's vector to each rank, of any lengths.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gloo/config.h"
#include "gloo/context.h"
#include "gloo/internal/options.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN

// One thread at a time; may be used again and again.
class AlltoallvOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;

  // counts[r]: elements for rank r. No input: the output and its counts are
  // the input; that takes a copy, and rank r's counts[s] is rank s's counts[r].
  template <typename T>
  void setInput(T* ptr, const std::vector<int64_t>& counts) {
    setCountedInput(ptr, counts);
  }
  template <typename T>
  void setInput(Buffer buffer, const std::vector<int64_t>& counts) {
    setCountedInput<T>(std::move(buffer), counts);
  }

  // counts[r]: elements from rank r.
  template <typename T>
  void setOutput(T* ptr, const std::vector<int64_t>& counts) {
    setCountedOutput(ptr, counts);
  }
  template <typename T>
  void setOutput(Buffer buffer, const std::vector<int64_t>& counts) {
    setCountedOutput<T>(std::move(buffer), counts);
  }
};

// Part s of rank r's output ends as part r of rank s's input. Element size
// agrees on all ranks; what rank s sends to rank r is what r expects from s.
// Anything else is an error on all ranks, which names both counts: within a
// second, of which who waits for what another does not send takes a quarter.
// Counts may be zero. Memory, threads and errors as for allreduce().
GLOO_API void alltoallv(const AlltoallvOptions& opts);

GLOO_NAMESPACE_END
