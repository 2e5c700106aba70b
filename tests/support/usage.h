// What a piece of code costs: allocations and CPU time of this process.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// How often memory was allocated since the process started, by any thread:
// malloc and everything built on it. Programs that call this have malloc
// interposed (under a sanitizer, its hooks are used).
uint64_t allocations();

// While it lives, no thread of this process is given so much, or more: malloc
// returns null, new throws. Not under a sanitizer.
class NoMemory {
 public:
  explicit NoMemory(size_t bytes = 0);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

// User and system time of all threads of this process.
std::chrono::nanoseconds cpuTime();

// How much of a core these threads use while `work` runs: 0.02 is 2 %.
double coreShareOf(const std::function<void()>& work);

}  // namespace test
GLOO_NAMESPACE_END
