// What older callers expect beside the standard library.
#pragma once

#include <memory>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

using std::make_unique;

GLOO_NAMESPACE_END
