// This host, this thread, and what the environment says about connecting.
// Thread-safe.
#pragma once

#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

// gethostname(2). Throws IoException.
GLOO_API std::string getHostname();

// Of the calling thread, for debuggers; cut to 15 characters.
GLOO_API void setThreadName(const std::string& name);

// The variables of the same names in gloo/common/env.h, read anew.
GLOO_API bool useRankAsSeqNumber();
GLOO_API bool isStoreExtendedApiEnabled();
GLOO_API bool disableConnectionRetries();

GLOO_NAMESPACE_END
