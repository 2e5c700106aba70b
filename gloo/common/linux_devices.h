// Kinds of PCI devices, by their class code.
#pragma once

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

// Matches a 24-bit class code (class, subclass, interface) when it is equal to
// `value` in the bits of `mask`.
struct PCIClassMatch {
  int value;
  int mask;
};

// Display controllers without a VGA or any other connector: accelerators.
constexpr PCIClassMatch kPCIClass3D{0x030200, 0xffff00};
// Network controllers: Ethernet, InfiniBand and others.
constexpr PCIClassMatch kPCIClassNetwork{0x020000, 0xff0000};

GLOO_NAMESPACE_END
