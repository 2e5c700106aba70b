// The memory that two processes share for one pair: a header and a ring for
// each direction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gloo/config.h"
#include "transport/base/fork.h"
#include "transport/base/socket.h"
#include "transport/shm/ring.h"
#include "transport/shm/sealed_memory.h"

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

// For a rank with this many peers. The bytes of all its rings together are at
// most 8 MiB, or the smallest segments if those are more; docs/shm.md
// has the table.
RingSize ringSizeFor(int peers);
size_t segmentBytes(RingSize size);

// Who made the segment, and who was given it.
enum class End { kMaker, kTaker };

// The NUMA nodes that both run on; -1: unknown. What an end receives lies on
// its own node, if there is room: it waits for those bytes, the sender does
// not.
struct Homes {
  int maker = -1;
  int taker = -1;
};

class Segment {
 public:
  // Throws IoException at limits of the system, with the remedy.
  static std::shared_ptr<Segment> create(RingSize size, const Secret& secret,
                                         const Homes& homes = {});

  // What a peer has handed over. Throws IoException unless it is a segment of
  // this size with this secret in it, whose pages are there to stay.
  static std::shared_ptr<Segment> adopt(base::UniqueFd memory, RingSize size,
                                        const Secret& secret);

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // To be handed over; gone after close().
  int descriptor() const { return memory_->descriptor(); }
  void close() { memory_->close(); }

  RingMemory outgoing(End end) const { return ring(end == End::kMaker); }
  RingMemory incoming(End end) const { return ring(end != End::kMaker); }

 private:
  Segment(std::unique_ptr<SealedMemory> memory, RingSize size);
  RingMemory ring(bool first) const;

  const std::unique_ptr<SealedMemory> memory_;
  const RingSize size_;
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
