// The device that a measured program uses.
#pragma once

#include <memory>
#include <string>

#include "gloo/transport/device.h"

namespace support {

// transport: "tcp" (TCP alone, on the loopback interface), "shm", "auto", or
// "ibverbs", with the name of a device (empty: the first active one). Ends the
// program with status 3, which the comparison takes for "not available", when
// this build lacks it.
std::shared_ptr<gloo::transport::Device> makeDevice(
    const std::string& transport, const std::string& device);

}  // namespace support
