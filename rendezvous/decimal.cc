#include "rendezvous/decimal.h"

#include <charconv>
#include <limits>

#include "gloo/common/error.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

bool parseInteger(std::string_view text, int64_t low, int64_t high,
                  int64_t* value) {
  int64_t parsed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc() || stop != end || parsed < low || parsed > high) {
    return false;
  }
  *value = parsed;
  return true;
}

int64_t sumOfDecimal(std::span<const char> value, int64_t increment,
                     const std::string& key) {
  int64_t sum = 0;
  using Limits = std::numeric_limits<int64_t>;
  if (!value.empty() && !parseInteger({value.data(), value.size()},
                                      Limits::min(), Limits::max(), &sum)) {
    throw IoException(
        MakeString("add: the value of key ", key, " is not a number"));
  }
  if (__builtin_add_overflow(sum, increment, &sum)) {
    throw IoException(MakeString("add: the value of key ", key, " overflows"));
  }
  return sum;
}

int64_t addToDecimal(std::vector<char>& value, int64_t increment,
                     const std::string& key) {
  const int64_t sum = sumOfDecimal(value, increment, key);
  const std::string text = std::to_string(sum);
  value.assign(text.begin(), text.end());
  return sum;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
