// launch::fromEnv() without the process's environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "gloo/config.h"
#include "gloo/launch.h"

GLOO_NAMESPACE_BEGIN
namespace launch {

// The value of a variable; nothing if it is not set, or empty.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// As fromEnv(), but makes no directory. Throws InvalidOperationException.
Environment resolve(const Lookup& lookup);

// A job directory for single-host runs: made, and checked to be this user's.
// Throws IoException.
void makeJobDirectory(const std::string& path);

}  // namespace launch
GLOO_NAMESPACE_END
