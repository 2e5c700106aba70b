// All ranks' vectors to all ranks, of any lengths.
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
class AllgathervOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;

  // None: a rank's part is in its output already.
  using CollectiveOptions::setInput;

  // counts[r]: elements of rank r's input; equal on all ranks.
  template <typename T>
  void setOutput(T* ptr, const std::vector<size_t>& counts) {
    setCountedOutput(ptr, counts);
  }
  template <typename T>
  void setOutput(Buffer buffer, const std::vector<size_t>& counts) {
    setCountedOutput<T>(std::move(buffer), counts);
  }
};

// Every rank's output ends as the inputs one after another, in the order of
// ranks. Element size and counts agree on all ranks; counts may be zero.
// Memory, threads and errors as for allreduce().
GLOO_API void allgatherv(const AllgathervOptions& opts);

GLOO_NAMESPACE_END
