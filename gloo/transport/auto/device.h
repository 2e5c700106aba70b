// Communication over the best that two ranks have in common: shared memory on
// one host, else RDMA, else TCP.
#pragma once

#include <memory>

#include "gloo/config.h"
#include "gloo/transport/device.h"
#include "gloo/transport/tcp/attr.h"
#if GLOO_HAVE_TRANSPORT_IBVERBS
#include "gloo/transport/ibverbs/device.h"
#endif

GLOO_NAMESPACE_BEGIN
namespace transport {

// Value. Ranks may differ in all of it.
struct GLOO_API DeviceAttr {
  // The interface at which peers greet each other, and the one for TCP.
  // (tcp.shm is not looked at.)
  tcp::attr tcp;
  // False, or GLOO_AUTO_LINKS without shm: no shared memory.
  bool shm = true;
  // False, or GLOO_AUTO_LINKS without ibverbs: no RDMA.
  bool rdma = true;
#if GLOO_HAVE_TRANSPORT_IBVERBS
  // The port, by default the first active one. (ibverbs.hostname is not looked
  // at.) A device that is named must exist; it may be down.
  ibverbs::attr ibverbs;
#endif
};

// Each pair of ranks finds out for itself, when it connects, what it can use:
// shared memory by sharing it, never by the names of hosts; RDMA where both
// have an active port and a queue pair can be made; else TCP. Both ranks go by
// the answer of the one that was called. What was chosen for a peer is logged
// (INFO) and named in errors; what may be chosen is in str(), and what was for
// how many peers. Throws as tcp::CreateDevice does; that there is no RDMA
// device, or no libibverbs, is no error, unless one is named.
// Memory of a GPU is refused, since not all links reach it: those of an ibverbs
// device do.
GLOO_API std::shared_ptr<Device> CreateDevice(const DeviceAttr& attr = {});

// The same, but a pair is connected when it is first used.
GLOO_API std::shared_ptr<Device> CreateLazyDevice(const DeviceAttr& attr = {});

}  // namespace transport
GLOO_NAMESPACE_END
