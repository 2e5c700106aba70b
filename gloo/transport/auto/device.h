// Communication over the best that two ranks have in common: shared memory on
// one host, else TCP.
#pragma once

#include <memory>

#include "gloo/config.h"
#include "gloo/transport/device.h"
#include "gloo/transport/tcp/attr.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

// Value.
struct GLOO_API DeviceAttr {
  tcp::attr tcp;  // the interface for peers on other hosts
  // False: over TCP on one host, too. Ranks may differ.
  bool shm = true;
};

// Each pair of ranks finds out for itself, when it connects, whether it can
// share memory: by doing so, never by the names of hosts. The choice is logged
// (INFO) and named in errors. Throws as tcp::CreateDevice does.
GLOO_API std::shared_ptr<Device> CreateDevice(const DeviceAttr& attr = {});

}  // namespace transport
GLOO_NAMESPACE_END
