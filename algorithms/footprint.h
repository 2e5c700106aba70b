// What a program does with a memory of the caller's.
#pragma once

#include <cstddef>
#include <vector>

#include "algorithms/program.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Bytes [begin, end) of a memory.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

// In order, with something between any two.
struct Footprint {
  std::vector<Span> needed;   // read before the program has written it
  std::vector<Span> written;  // all of it
  size_t end = 0;             // of both
};

Footprint footprintOf(const Program& program, Memory memory);

}  // namespace algorithms
GLOO_NAMESPACE_END
