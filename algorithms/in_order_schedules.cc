#include "algorithms/schedules.h"

// Reductions along the chain of the ranks, ((0 + 1) + 2) + ..., as operations
// in lanes do them (direct.h): what takes the links because no lane was idle
// has the same bits as in a lane.

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Every rank meets rank 0 first, then rank 1, and so on: two ranks meet each
// other in that round of both whose numbers have their sum. Each hands over the
// other's block, and the sum of its own block so far is the left operand. 2
// steps for each rank to meet.
Step meetingStep(const Setting& s, int i) {
  const int peer = i / 2;
  const Blocks sum{Area::kScratch, s.rank, 1};
  const Blocks own{Area::kInput, s.rank, 1};
  if (peer == s.rank) {
    return i % 2 == 0  ? Step::idle(peer)
           : peer == 0 ? Step::copy(peer, own, sum)
                       : Step::reduce(peer, sum, own);
  }
  if (i % 2 == 0) {
    return Step::send(peer, peer, {Area::kInput, peer, 1});
  }
  return peer == 0 ? Step::recv(peer, peer, sum)
                   : Step::recvReduce(peer, peer, sum, sum, true);
}

Step reduceScatterStep(const Setting& s, int i) {
  if (i < 2 * s.size) {
    return meetingStep(s, i);
  }
  return Step::copy(s.size, {Area::kScratch, s.rank, 1}, {Area::kOutput, 0, 1});
}

// In turn t the sums go to the ranks t above.
Step allreduceStep(const Setting& s, int i) {
  if (i < 2 * s.size) {
    return meetingStep(s, i);
  }
  const Blocks result{Area::kOutput, s.rank, 1};
  if (i == 2 * s.size) {
    return Step::copy(s.size, {Area::kScratch, s.rank, 1}, result);
  }
  const int k = i - 2 * s.size - 1;
  const int turn = k / 2 + 1;
  const int from = wrap(s.rank - turn, s.size);
  return k % 2 == 0
             ? Step::send(s.size + turn, wrap(s.rank + turn, s.size), result)
             : Step::recv(s.size + turn, from, {Area::kOutput, from, 1});
}

Step reduceStep(const Setting& s, int i) {
  if (i < 2 * s.size) {
    return meetingStep(s, i);
  }
  const int peer = i - 2 * s.size;
  const int round = s.size + peer;
  const Blocks sum{Area::kScratch, s.rank, 1};
  if (s.rank != s.root) {
    return peer == s.rank ? Step::send(round, s.root, sum) : Step::idle(round);
  }
  const Blocks part{Area::kOutput, peer, 1};
  return peer == s.rank ? Step::copy(round, sum, part)
                        : Step::recv(round, peer, part);
}

}  // namespace

Schedule allreduceInOrder(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 4 * s.size - 1, allreduceStep};
}

Schedule reduceInOrder(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 3 * s.size, reduceStep};
}

Schedule reduceScatterInOrder(const Setting& s) {
  if (s.size == 1) {
    return copyAll(s);
  }
  return {s, 2 * s.size + 1, reduceScatterStep};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
