// Measures one kernel against memcpy and against a plain loop: interleaved, so
// that what else runs on the machine hits all three, and by medians.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gloo/internal/kernels.h"

namespace gloo::micro {

struct Subject {
  std::string name;  // "float32_sum"
  internal::ElementType type;
  internal::Reduction reduction;
  double leastRatio;    // of memcpy's bytes touched per second
  double leastSpeedup;  // over the plain loop; 0: no bar
};

struct Measurement {
  size_t bytesTouched = 0;
  double kernelSeconds = 0;
  double memcpySeconds = 0;  // for the same number of bytes touched
  double scalarSeconds = 0;  // 0: no plain loop for this type

  double ratio() const { return memcpySeconds / kernelSeconds; }
  double speedup() const { return scalarSeconds / kernelSeconds; }
  double gigabytesPerSecond() const {
    return static_cast<double>(bytesTouched) / kernelSeconds / 1e9;
  }
  bool reaches(const Subject& subject) const;
};

// All kernels, with their bars.
std::vector<Subject> subjects();

Measurement measure(const Subject& subject);

std::string describeSpeedup(const Subject& subject, const Measurement& result);

// c[i] = a[i] op b[i], one element at a time and compiled without
// vectorisation; null where there is none.
using Loop = void (*)(void* c, const void* a, const void* b, size_t elements);
Loop scalarLoop(internal::ElementType type, internal::Reduction reduction);

}  // namespace gloo::micro
