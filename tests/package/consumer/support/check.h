// CHECK(condition): throws with the text and place of what did not hold.
#pragma once

#include <stdexcept>
#include <string>

#include "gloo/config.h"

#if EXPECT_OURS
#ifndef GLOO_IMPLEMENTATION
#error "compiled against another Gloo's headers"
#endif
#else
#ifdef GLOO_IMPLEMENTATION
#error "meant to be compiled against Debian's libgloo"
#endif
#endif

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) {                                           \
      throw std::runtime_error(std::string(__FILE__) + ":" +      \
                               std::to_string(__LINE__) +         \
                               ": does not hold: " + #condition); \
    }                                                             \
  } while (false)

// Whether `body()` throws an Error whose text contains `part`.
template <typename Error, typename Body>
bool throwsWith(const std::string& part, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return std::string(error.what()).find(part) != std::string::npos;
  }
  return false;
}
