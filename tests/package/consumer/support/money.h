// An element type of the caller's own, in vectors.
#pragma once

#include <cstddef>
#include <vector>

// A type that the library has never heard of: no more than its operators.
struct Money {
  long cents = 0;
};
inline Money operator+(Money a, Money b) { return {a.cents + b.cents}; }
inline Money operator*(Money a, Money b) { return {a.cents * b.cents}; }
inline bool operator<(Money a, Money b) { return a.cents < b.cents; }
inline bool operator==(Money a, Money b) { return a.cents == b.cents; }

inline std::vector<Money> money(size_t count, long cents) {
  return std::vector<Money>(count, Money{cents});
}
