// Counts of what a device did. Tests assert on them: counts do not lie on a
// noisy machine.
#pragma once

#include <cstdint>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
class Device;
}
namespace internal {

// Totals since the device was made. A copy is a snapshot.
struct Statistics {
  uint64_t systemCalls = 0;  // on the data path
  uint64_t framesSent = 0;
  uint64_t framesReceived = 0;
  uint64_t bytesSent = 0;  // payload
  uint64_t bytesReceived = 0;
  uint64_t eagerSent = 0;   // messages
  uint64_t directSent = 0;  // messages straight into advertised memory
  uint64_t announcesSent = 0;
  uint64_t advertsSent = 0;
  uint64_t creditsSent = 0;    // frames that only return credits
  uint64_t unexpected = 0;     // messages that met no receive
  uint64_t bytesCopied = 0;    // through bounce memory, by this process
  uint64_t bytesLent = 0;      // received, from memory that the peer has lent
  uint64_t allocations = 0;    // of bounce memory and operation storage
  uint64_t registrations = 0;  // of memory with a device
  uint64_t posts = 0;          // work requests
  uint64_t doorbells = 0;
  uint64_t signalled = 0;  // of the posts: ask for a completion
  uint64_t completions = 0;
  uint64_t receiverNotReady = 0;
  uint64_t blockingWaits = 0;  // times a thread slept in the kernel
  uint64_t handoffs = 0;       // of the driver's role

  Statistics& operator+=(const Statistics& more) {
    systemCalls += more.systemCalls;
    framesSent += more.framesSent;
    framesReceived += more.framesReceived;
    bytesSent += more.bytesSent;
    bytesReceived += more.bytesReceived;
    eagerSent += more.eagerSent;
    directSent += more.directSent;
    announcesSent += more.announcesSent;
    advertsSent += more.advertsSent;
    creditsSent += more.creditsSent;
    unexpected += more.unexpected;
    bytesCopied += more.bytesCopied;
    bytesLent += more.bytesLent;
    allocations += more.allocations;
    registrations += more.registrations;
    posts += more.posts;
    doorbells += more.doorbells;
    signalled += more.signalled;
    completions += more.completions;
    receiverNotReady += more.receiverNotReady;
    blockingWaits += more.blockingWaits;
    handoffs += more.handoffs;
    return *this;
  }
};

// A snapshot; zeros for devices that do not count.
GLOO_API Statistics statisticsOf(const transport::Device& device);

}  // namespace internal
GLOO_NAMESPACE_END
