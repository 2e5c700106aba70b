// What a piece of code costs: allocations and CPU time of this process.
#pragma once

#include <chrono>
#include <cstdint>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// How often memory was allocated since the process started, by any thread:
// malloc and everything built on it. Programs that call this have malloc
// interposed (under a sanitizer, its hooks are used).
uint64_t allocations();

// User and system time of all threads of this process.
std::chrono::nanoseconds cpuTime();

}  // namespace test
GLOO_NAMESPACE_END
