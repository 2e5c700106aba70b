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
  Hazards() = default;
  Hazards(const Hazards&) = delete;
  Hazards& operator=(const Hazards&) = delete;

  // Action `index` reads or writes [place, place + bytes), which is not empty;
  // what it has to wait for is appended to `waits`, possibly more than once.
  // For one action, all reads come before its write.
  void read(uint32_t index, Place place, size_t bytes,
            std::vector<uint32_t>& waits);
  void write(uint32_t index, Place place, size_t bytes,
             std::vector<uint32_t>& waits);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The last action that wrote it, and who has read it since: the last of them,
  // and where in readers_ the ones before are.
  struct Span {
    size_t end = 0;
    uint32_t writer = kNone;
    uint32_t reader = kNone;
    uint32_t earlier = kNone;
  };
  struct Reader {
    uint32_t reader;
    uint32_t earlier;
  };
  using Spans = std::map<size_t, Span>;
  struct Touched {
    Spans spans;
    // What was read and written last: the next is most often beside it.
    Spans::iterator lastRead = spans.end();
    Spans::iterator lastWritten = spans.end();
  };

  // The first span that ends behind `at`; `near` is any.
  static Spans::iterator find(Spans& spans, Spans::iterator near, size_t at);
  // Ends it there; returns the rest.
  static Spans::iterator split(Spans& spans, Spans::iterator it, size_t at);
  // Makes spans begin and end exactly at `begin` and `end`, covering all
  // between; returns the first.
  static Spans::iterator isolate(Spans& spans, Spans::iterator near,
                                 size_t begin, size_t end);

  std::array<Touched, kMemories> memories_;
  std::vector<Reader> readers_;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
