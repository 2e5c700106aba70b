// What the catalogue does not say of an algorithm: for people.
#pragma once

#include <span>
#include <string_view>

#include "algorithms/catalogue.h"

namespace gloo_simulate {

struct Description {
  gloo::algorithms::Collective collective;
  std::string_view algorithm;
  std::string_view text;
  // n ranks, m bytes in total, H hosts of k ranks; rounds, and what the busiest
  // rank moves in one direction and reduces.
  std::string_view cost;
  std::string_view chosen;  // when the cost model takes it
  std::string_view source;
  int ranks = 8;  // of the picture
  int segments = 1;
  int ranksPerHost = 1;
};

// Null if there is none: the document then says nothing but the name.
const Description* descriptionOf(
    const gloo::algorithms::AlgorithmInfo& algorithm);

// What a collective does, in a line.
std::string_view promiseOf(gloo::algorithms::Collective collective);

}  // namespace gloo_simulate
