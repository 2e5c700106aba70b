// The "pingpong" of two ranks, the same in every program: see Work.
#pragma once

#include "measure.h"

namespace measure {

// `side` is what this rank does of a round trip, with memory of `work`:
// expect() before anything is on its way, send(), receive() until the other's
// is there, and finish(), after which all may be done again.
template <typename Side>
Operation pingPong(const Work& work, bool first, Side side) {
  return [first, side, trips = work.roundTrips] {
    for (int i = 0; i < trips; i++) {
      side.expect();
      if (first) {
        side.send();
      }
      side.receive();
      if (!first) {
        side.send();
      }
      side.finish();
    }
  };
}

}  // namespace measure
