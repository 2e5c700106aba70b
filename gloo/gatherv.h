// All ranks' vectors to the root, of any lengths.
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
class GathervOptions : public internal::CollectiveOptions {
 public:
  using CollectiveOptions::CollectiveOptions;

  // The root may set none, and have its part in the output already.
  using CollectiveOptions::setInput;

  // The root's. counts[r]: elements of rank r's input. Others' may be anything.
  template <typename T>
  void setOutput(T* ptr, const std::vector<size_t>& counts) {
    setCountedOutput(ptr, counts);
  }
  template <typename T>
  void setOutput(Buffer buffer, const std::vector<size_t>& counts) {
    setCountedOutput<T>(std::move(buffer), counts);
  }

  using CollectiveOptions::setRoot;
};

// The root's output ends as the inputs one after another, in the order of
// ranks. Element size and root agree on all ranks; only the root knows all
// counts. An input that is not of the length that the root expects is an error
// on all ranks, which names both counts: within a second, and at the next call
// of those that have returned. Memory, threads and errors as for allreduce().
GLOO_API void gatherv(const GathervOptions& opts);

GLOO_NAMESPACE_END
