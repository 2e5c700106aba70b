// The cgroups (containers, jobs) whose limits count for this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

struct Cgroup {
  std::string directory;  // of its files
  int version = 2;        // 1 or 2, whose files have other names
};

// This process's own group, and all above it that can be seen from here, in the
// hierarchy with that controller ("memory", "cpu") of the first version and in
// that of the second. What cannot be found out is left out. Reads files below
// `root`: a test has its own.
std::vector<Cgroup> cgroupsOf(std::string_view controller,
                              const std::string& root = {});

}  // namespace internal
GLOO_NAMESPACE_END
