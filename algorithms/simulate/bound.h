// What no algorithm can do in less time.
#pragma once

#include <cstddef>
#include <string_view>

#include "algorithms/catalogue.h"
#include "algorithms/network.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms::simulate {

// Seconds. E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn, "Collective
// communication: theory, practice, and experience", CCPE 19(13), 2007, section
// 3 (lower bounds), for each term alone:
// - latency: ceil(log2 n) messages one after the other, where a rank has one
//   under way at a time. (Where a network allows more, an algorithm whose
//   messages overlap can be below it.)
// - bandwidth: what one rank has to send or receive, at G a byte; where the
//   processors move the bytes, at what the cheaper of both ends takes;
// - reduction: what has to be reduced, shared evenly: (n - 1) / n of the
// vector.
struct Bound {
  double latency = 0;
  double bandwidth = 0;
  double reduction = 0;

  double seconds() const;
  // The name of the largest.
  std::string_view term() const;
};

// `bytes` as sharedBytes() gives it: of the vector, or of all ranks' blocks
// together; of the v-collectives with blocks of equal size. Of a network of
// hosts the terms are those of ranks, which may use both links at once, and
// those of whole hosts with the link between them, whichever is more.
Bound lowerBound(Collective collective, int size, size_t bytes,
                 const NetworkParameters& network);

}  // namespace algorithms::simulate
GLOO_NAMESPACE_END
