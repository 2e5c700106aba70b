// What the examples have in common.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/context.h"
#include "gloo/math.h"

// A number of ranks, or one of them: at most what the library takes. Or -1.
inline int parseNumber(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  const bool good =
      end != text && *end == '\0' && value >= 0 && value <= 131072;
  return good ? int(value) : -1;
}

// Every rank contributes {rank, rank + 1, rank + 2, ...}; each prints and
// checks the sum. Returns the exit status.
inline int sumOverRanks(const std::shared_ptr<gloo::Context>& context) {
  std::vector<float> data(1000);
  for (size_t i = 0; i < data.size(); i++) {
    data[i] = float(context->rank) + float(i);
  }

  gloo::AllreduceOptions options(context);
  options.setOutput(data.data(), data.size());  // no input set: in place
  void (*sum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;
  options.setReduceFunction(sum);  // sum<T> is overloaded: name the type
  gloo::allreduce(options);

  const int n = context->size;
  std::printf("rank %d of %d: the sum begins with %g %g %g\n", context->rank, n,
              data[0], data[1], data[2]);
  for (size_t i = 0; i < data.size(); i++) {
    const float ranks = float(n) * float(n - 1) / 2;  // 0 + 1 + ... + (n - 1)
    if (data[i] != ranks + float(n) * float(i)) {
      std::fprintf(stderr, "element %zu is wrong: %g\n", i, data[i]);
      return 1;
    }
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {  // a full disk, say
    std::fprintf(stderr, "not all output could be written to stdout\n");
    return 1;
  }
  return 0;
}
