// Telling a rank that died while its group was connecting from what an earlier
// run left behind: both are addresses at which nobody answers. A record of this
// host that was written after this process began, and after its last group was
// connected, is of this run.
#pragma once

#include <cstdint>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Microseconds since 1970, of this host's clock.
uint64_t wallClockMicroseconds();

// Whether a record that a process of this host wrote at that time is of this
// run.
bool isOfThisRun(uint64_t writtenAt);

// A group was connected: what was written until now is of no other one.
void endOfRun();

}  // namespace rendezvous
GLOO_NAMESPACE_END
