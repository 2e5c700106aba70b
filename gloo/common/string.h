// Text built from values with operator<<.
#pragma once

#include <sstream>
#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

// The concatenation of all arguments as operator<< prints them. Thread-safe.
template <typename... Args>
std::string MakeString(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

inline std::string MakeString() { return std::string(); }
inline std::string MakeString(const std::string& text) { return text; }
inline std::string MakeString(const char* text) { return text; }

GLOO_NAMESPACE_END
