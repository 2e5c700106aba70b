// Telling this run's records from what an earlier run left behind: at both
// addresses nobody answers when a rank has died or given up. A record of this
// host that was written after this process began, and after its last group was
// connected, is of this run. All is thread-safe.
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

// The same of what a rank wrote when it gave up, but for a process that has
// tried before: others may have told the end of that attempt after it.
bool isRefusalOfThisRun(uint64_t writtenAt);

// Such a record that is not, yet so fresh that it may well be: whoever wrote it
// comes again soon if this is another run.
bool isFreshRefusal(uint64_t writtenAt);

// A group was connected: what was written until now is of no other one.
void endOfRun();

// A group could not be connected.
void failedRun();

}  // namespace rendezvous
GLOO_NAMESPACE_END
