// What each rank moves and reduces in a v-collective, from the descriptions of
// the algorithms alone: the schedules are not looked at.
#pragma once

#include <cstddef>
#include <vector>

#include "algorithms/verify/verify.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::verify {

struct UnevenWork {
  explicit UnevenWork(int size)
      : sent(static_cast<size_t>(size)),
        received(static_cast<size_t>(size)),
        reduced(static_cast<size_t>(size)) {}

  size_t busiest() const;  // most that a rank sends or receives
  size_t mostReduced() const;

  std::vector<size_t> sent;
  std::vector<size_t> received;
  std::vector<size_t> reduced;
};

// Of bytes. Hosts: of equal size, rank by rank. Throws std::logic_error for an
// algorithm without a formula.
UnevenWork unevenWorkOf(const Job& job);

}  // namespace algorithms::verify
GLOO_NAMESPACE_END
