// Which earlier actions an action must wait for, from the memory they touch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "algorithms/program.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Remembers for every byte the last action that wrote it and those that have
// read it since. One thread.
class Hazards {
 public:
  // Action `index` reads or writes [place, place + bytes); what it has to wait
  // for is appended to `waits`, possibly more than once. For one action, all
  // reads come before its write.
  void read(uint32_t index, Place place, size_t bytes,
            std::vector<uint32_t>& waits);
  void write(uint32_t index, Place place, size_t bytes,
             std::vector<uint32_t>& waits);

 private:
  struct Span {
    size_t end = 0;
    int64_t writer = -1;
    std::vector<uint32_t> readers;
  };
  using Spans = std::map<size_t, Span>;

  // Makes spans begin and end exactly at `begin` and `end`, covering all
  // between; returns the first.
  Spans::iterator isolate(Spans& spans, size_t begin, size_t end);

  std::array<Spans, kMemories> memories_;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
