// Communication over TCP; with ranks of the same host, through shared memory.
#pragma once

#include <memory>

#include "gloo/config.h"
#include "gloo/transport/device.h"
#include "gloo/transport/tcp/attr.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
namespace tcp {

// The attributes with ai_addr and iface as they were found. Throws
// InvalidOperationException that says what was tried and which interfaces
// there are.
GLOO_API struct attr CreateDeviceAttr(const struct attr& src);

// Listens on the address that CreateDeviceAttr finds. Each pair of ranks finds
// out when it connects whether it can share memory, by doing so: attr::shm,
// docs/shm.md. Throws as CreateDeviceAttr does, and IoException at limits of
// the system.
GLOO_API std::shared_ptr<transport::Device> CreateDevice(
    const struct attr& attr);

// The same, but a pair is connected when it is first used.
GLOO_API std::shared_ptr<transport::Device> CreateLazyDevice(
    const struct attr& attr);

}  // namespace tcp
}  // namespace transport
GLOO_NAMESPACE_END
