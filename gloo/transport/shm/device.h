// Communication through shared memory, between ranks of one host.
#pragma once

#include <memory>

#include "gloo/config.h"
#include "gloo/transport/device.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
namespace shm {

// Value.
struct GLOO_API attr {
  // Large messages may be read straight from the sender's memory
  // (process_vm_readv(2)) where the kernel permits it, which is found out when
  // two ranks connect and may end later, and where that is quicker: messages
  // with more ranks than cores, or when the sender sleeps; alltoall from 1 MiB
  // on. False, or GLOO_SHM_SINGLE_COPY=0: always through the shared segment,
  // with two copies.
  bool singleCopy = true;

  // Asks the kernel to let any process of this user read this one's memory
  // (PR_SET_PTRACER_ANY), where Yama's ptrace_scope = 1 forbids it. Weakens the
  // protection of the whole process for as long as it runs.
  bool allowAnyTracer = false;
};

// Ranks must be processes of one user, or threads, on one host and in one
// network namespace; others are refused when they connect. Greetings go over
// the loopback interface. Memory: docs/shm.md. Throws IoException at limits of
// the system.
GLOO_API std::shared_ptr<transport::Device> CreateDevice(
    const struct attr& attr = {});

}  // namespace shm
}  // namespace transport
GLOO_NAMESPACE_END
