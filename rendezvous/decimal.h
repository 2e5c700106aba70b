// The form in which stores keep the counters of add(): decimal text, as Redis
// does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// The whole text as a decimal number in [low, high]; false otherwise.
bool parseInteger(std::string_view text, int64_t low, int64_t high,
                  int64_t* value);

// The sum of a counter and an increment; empty counts as 0. Throws IoException
// naming `key` if the value is no number, or would overflow.
int64_t sumOfDecimal(std::span<const char> value, int64_t increment,
                     const std::string& key);

// The same, and stores the sum in `value`.
int64_t addToDecimal(std::vector<char>& value, int64_t increment,
                     const std::string& key);

}  // namespace rendezvous
GLOO_NAMESPACE_END
