// Runs the kernels as each kind of processor that this one can stand in for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gloo::testing {

// Calls `work` once for every dispatch target that was compiled and that this
// processor supports, with kernelFor() choosing that one.
void forEachTarget(const std::function<void(const std::string& name)>& work);

}  // namespace gloo::testing
