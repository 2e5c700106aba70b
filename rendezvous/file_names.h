// File names from keys: any bytes, any length.
#pragma once

#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// Letters, digits, '.', '_' and '-' stay, other bytes become %XX, so that
// different keys have different names and none leaves its directory. A name
// that a file system could refuse for its length is cut and ends in a 128-bit
// hash of the key.
std::string fileNameOfKey(const std::string& key);

// Whether a directory entry is such a name (and not a temporary or lock file).
bool isKeyFileName(const std::string& name);

}  // namespace rendezvous
GLOO_NAMESPACE_END
