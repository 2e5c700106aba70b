#include "algorithms/schedules.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// One block that stands for "heard of": the union of the contributions. A rank
// may leave when it holds everybody's.
Step disseminationStep(const Setting& s, int i) {
  const int round = i / 2;
  const int distance = 1 << round;
  const Blocks out{Area::kOutput, 0, 1};
  const Blocks own{round == 0 ? Area::kInput : Area::kOutput, 0, 1};
  if (i % 2 == 0) {
    return Step::send(round, wrap(s.rank + distance, s.size), own);
  }
  return Step::recvReduce(round, wrap(s.rank - distance, s.size), own, out,
                          true);
}

}  // namespace

Schedule barrierDissemination(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 2 * ceilLog2(s.size), disseminationStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
