// The memory that two processes share for one pair: a header and a ring for
// each direction. A memfd without a name, allocated and sealed against changes
// of its size before anybody else sees it, so that no access to it can fail
// later, and gone when both have let go of it, however they end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gloo/config.h"
#include "transport/base/fork.h"
#include "transport/base/socket.h"
#include "transport/shm/ring.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

using Secret = std::array<char, 16>;

// From the system's random source.
Secret makeSecret();

// Of one ring; equal for both directions.
struct RingSize {
  uint32_t cells = 0;
  uint32_t bytes = 0;
};

// For a rank with this many peers. All its segments together are at most
// 8 MiB, or the smallest segments if those are more; docs/shm.md
// has the table.
RingSize ringSizeFor(int peers);
size_t segmentBytes(RingSize size);

// Who made the segment, and who was given it.
enum class End { kMaker, kTaker };

class Segment {
 public:
  // Throws IoException at limits of the system, with the remedy.
  static std::shared_ptr<Segment> create(RingSize size, const Secret& secret);

  // What a peer has handed over. Throws IoException unless it is a segment of
  // this size with this secret in it, whose pages are there to stay.
  static std::shared_ptr<Segment> adopt(base::UniqueFd memory, RingSize size,
                                        const Secret& secret);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // To be handed over; gone after close().
  int descriptor() const { return memory_.get(); }
  void close() { memory_.reset(); }

  RingMemory outgoing(End end) const { return ring(end == End::kMaker); }
  RingMemory incoming(End end) const { return ring(end != End::kMaker); }

 private:
  Segment(base::UniqueFd memory, RingSize size);
  RingMemory ring(bool first) const;

  base::UniqueFd memory_;
  const RingSize size_;
  const size_t bytes_;
  char* base_ = nullptr;
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
