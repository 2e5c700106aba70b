// How much memory this process may still take before the kernel ends it: of the
// machine, and of the memory cgroups that it is in (containers, jobs).
#pragma once

#include <cstdint>
#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// Bytes, with what the kernel would give back or swap out first. What cannot be
// found out is no limit: UINT64_MAX. Reads files below `root`: a test has its
// own.
uint64_t memoryLeft(const std::string& root = {});

}  // namespace transport::shm
GLOO_NAMESPACE_END
