// A parser of bytes from outside, as fuzzing sees it. Each target is one source
// file, which is built into
//   <name>_fuzz   a libFuzzer program (preset fuzz)
//   fuzz_replay   a test of every build: a fixed set of mutated seeds
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

struct FuzzTarget {
  const char* name;
  // Must return, or throw what the parser's contract names; run() catches that
  // and aborts when a promise is broken.
  void (*run)(const char* data, size_t bytes);
  std::vector<std::vector<char>> seeds;
};

std::vector<FuzzTarget>& fuzzTargets();

struct AddFuzzTarget {
  explicit AddFuzzTarget(FuzzTarget target) {
    fuzzTargets().push_back(std::move(target));
  }
};

// Ends the process: libFuzzer and the replay both report it.
void require(bool promise, const char* what);

}  // namespace test
GLOO_NAMESPACE_END
