// Deterministic damage to bytes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// One to four changes: a bit, a byte, an integer at its limits, a cut, a
// repetition, an insertion.
std::vector<char> mutate(std::vector<char> bytes, std::mt19937_64& random);

}  // namespace test
GLOO_NAMESPACE_END
