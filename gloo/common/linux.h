// What the Linux kernel says about modules and devices, from /proc and /sys.
// Thread-safe. What cannot be found out is an empty or unknown value, never an
// error: containers hide much of it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gloo/common/linux_devices.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

// Names of the loaded kernel modules, as they were at the first call.
GLOO_API const std::set<std::string>& kernelModules();

// Bus identifiers ("0000:3b:00.0") of all devices of a kind, in order.
GLOO_API std::vector<std::string> pciDevices(PCIClassMatch match);

// Edges of the PCI tree between two bus identifiers: 0 for the same device, 2
// below the same bridge; the largest int if either is unknown.
GLOO_API int pciDistance(const std::string& a, const std::string& b);

// Bus identifier of a network interface ("eth0") or of an RDMA device
// ("mlx5_0"); empty for one that is no PCI device.
GLOO_API std::string interfaceToBusID(const std::string& name);
GLOO_API std::string infinibandToBusID(const std::string& name);

// In Mb/s; -1 if unknown, as for virtual interfaces.
GLOO_API int getInterfaceSpeedByName(const std::string& name);

GLOO_NAMESPACE_END
