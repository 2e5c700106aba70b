// A collective algorithm as data: the steps of one rank over blocks of a
// vector. A schedule knows neither bytes nor memory nor peers' state; it is a
// pure function of its setting, so that it can be proven, simulated and drawn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// Each area is divided into its own blocks (see layout.h).
enum class Area : uint8_t {
  kInput = 0,    // the caller's; never written
  kOutput = 1,   // the caller's; undefined at the start unless in place
  kScratch = 2,  // the executor's; undefined at the start
};

// Blocks first, first + 1, ..., cyclic: after the area's last block comes its
// block 0.
struct Blocks {
  Area area = Area::kInput;
  int first = 0;
  int count = 0;
};

enum class StepKind : uint8_t {
  kIdle,        // nothing: keeps step(i) simple
  kSend,        // source -> peer
  kRecv,        // peer -> target
  kRecvReduce,  // target = source (op) message, or message (op) source
  kCopy,        // target = source
  kReduce,      // target = target (op) source
};

// The meaning of a schedule is that of its steps one after the other, where a
// send or a receive is complete when the step is. The executor overlaps
// whatever does not touch the same memory. Steps of equal `round` are
// neighbours; the executor takes them segment by segment in turn, so within a
// round two steps touch either the very same blocks or none in common.
struct Step {
  StepKind kind = StepKind::kIdle;
  // kRecvReduce: the source is the left operand, because it holds the lowest
  // contribution of the two.
  bool ownFirst = false;
  int peer = -1;
  int round = 0;
  Blocks source;
  Blocks target;

  static Step idle(int round) {
    Step step;
    step.round = round;
    return step;
  }
  static Step send(int round, int peer, Blocks source) {
    return {StepKind::kSend, false, peer, round, source, {}};
  }
  static Step recv(int round, int peer, Blocks target) {
    return {StepKind::kRecv, false, peer, round, {}, target};
  }
  static Step recvReduce(int round, int peer, Blocks source, Blocks target,
                         bool ownFirst) {
    return {StepKind::kRecvReduce, ownFirst, peer, round, source, target};
  }
  static Step copy(int round, Blocks source, Blocks target) {
    return {StepKind::kCopy, false, -1, round, source, target};
  }
  static Step reduce(int round, Blocks target, Blocks source) {
    return {StepKind::kReduce, true, -1, round, source, target};
  }
};

class HostMap;

// What a schedule is a function of. Borrows `hosts` as long as there are
// schedules of it.
struct Setting {
  int rank = 0;
  int size = 1;
  int root = 0;
  int radix = 2;                   // bcube
  const HostMap* hosts = nullptr;  // of `size` ranks; null: not known
};

// Immutable value of constant size; thread-safe.
class Schedule {
 public:
  using StepFunction = Step (*)(const Setting& setting, int index);

  Schedule(const Setting& setting, int steps, StepFunction function)
      : setting_(setting), steps_(steps), function_(function) {}

  int steps() const { return steps_; }
  Step step(int index) const { return function_(setting_, index); }
  const Setting& setting() const { return setting_; }

 private:
  Setting setting_;
  int steps_;
  StepFunction function_;
};

// ---- Small arithmetic that the algorithms share. ----

// The largest power of two that is at most n; n >= 1.
constexpr int floorPowerOfTwo(int n) {
  int power = 1;
  while (power <= n / 2) {
    power *= 2;
  }
  return power;
}

// The smallest k with 2^k >= n.
constexpr int ceilLog2(int n) {
  int k = 0;
  while ((int64_t{1} << k) < n) {
    k++;
  }
  return k;
}

constexpr size_t ceilDivide(size_t a, size_t b) { return (a + b - 1) / b; }

// i modulo n in 0..n-1, for i >= -n.
constexpr int wrap(int i, int n) { return (i % n + n) % n; }

}  // namespace algorithms
GLOO_NAMESPACE_END
