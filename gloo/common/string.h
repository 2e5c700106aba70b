// Text built from values with operator<<.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

namespace string_detail {

template <typename T>
void print(std::ostream& out, const T& value) {
  out << value;
}

template <typename T, typename A>
void print(std::ostream& out, const std::vector<T, A>& values) {
  const char* space = "";
  for (const T& value : values) {
    out << space;
    print(out, value);
    space = " ";
  }
}

}  // namespace string_detail

// The concatenation of all arguments as operator<< prints them, the elements of
// vectors with a space between them. Thread-safe.
template <typename... Args>
std::string MakeString(const Args&... args) {
  std::ostringstream out;
  (string_detail::print(out, args), ...);
  return out.str();
}

inline std::string MakeString() { return std::string(); }
inline std::string MakeString(const std::string& text) { return text; }
inline std::string MakeString(const char* text) { return text; }

GLOO_NAMESPACE_END
