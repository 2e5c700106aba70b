// What the two ends of a link tell each other in their hellos: the caller,
// where the other one may hand over a segment; the other one, that it has done
// so. Bytes from outside: decoding checks them.
#pragma once

#include <cstdint>
#include <vector>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/shm/segment.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

struct Greeting {
  Secret endpoint{};  // the caller's: where it listens
  Secret token{};     // of this link, drawn by the caller
  Secret segment{};   // the answerer's: what stands in the segment
  // Where, in the sender's memory, `probe` can be found.
  uint64_t probeAddress = 0;
  Secret probe{};
  // base::hostIdentity() of the sender's device.
  uint64_t hostId = 0;
  // The NUMA node that the sender's threads run on; -1: unknown.
  int32_t home = -1;
  // Limits, as in LinkCaps.
  uint64_t eagerBytes = 0;
  uint64_t creditBytes = 0;
  uint64_t maxFrameBytes = 0;
};

std::vector<char> encode(const Greeting& greeting);
// Throws IoException.
Greeting decodeGreeting(const std::vector<char>& bytes);

// The limits of both sides. Throws IoException when theirs are none.
base::LinkCaps agreeLimits(const base::LinkCaps& mine, const Greeting& theirs);

}  // namespace transport::shm
GLOO_NAMESPACE_END
