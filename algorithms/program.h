// A schedule expanded for one size: the actions that the executor performs,
// segment by segment, with what each has to wait for. This is what the verifier
// proves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/layout.h"
#include "algorithms/schedule.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// The areas of a schedule, and the memory where segments wait to be reduced.
enum class Memory : uint8_t {
  kInput = 0,
  kOutput = 1,
  kScratch = 2,
  kStage = 3,
};
constexpr int kMemories = 4;

// One word: programs of many ranks have millions of actions.
struct Place {
  Memory memory : 8 = Memory::kInput;
  uint64_t offset : 56 = 0;  // bytes
};
static_assert(sizeof(Place) == sizeof(uint64_t));

enum class ActionKind : uint8_t {
  kSend,    // source -> peer
  kRecv,    // peer -> target
  kReduce,  // target = source (op) staged, or staged (op) source
  kCopy,    // target = source
};

struct Action {
  ActionKind kind = ActionKind::kCopy;
  bool ownFirst = false;
  int peer = -1;
  size_t bytes = 0;
  Place source;
  Place target;
  Place staged;
  // Starts when the actions waits[firstWait .. firstWait + waitCount) are done
  // and `after` (-1: none), the one before it to the same peer in the same
  // direction, has started: messages match in the order of their start.
  uint32_t firstWait = 0;
  uint32_t waitCount = 0;
  int32_t after = -1;
};

// How a schedule is expanded. All but `window` and `stageBytes` must be equal
// on all ranks: they decide where messages begin and end.
struct ExpandOptions {
  size_t elementSize = 1;
  size_t segmentBytes = 1 << 20;
  // A vector that is longer is cut into strips of at most this; the schedule
  // runs on one after the other, overlapping where they meet. So what one step
  // leaves in the processor's cache, the next one finds there. 0: it is not.
  // Only for algorithms that divide a vector (AlgorithmInfo::blocks).
  size_t stripBytes = 0;
  // The executor keeps at most the first `window` unfinished actions in view.
  int window = 32;
  // Room for segments that wait to be reduced; at least two fit always.
  size_t stageBytes = 1 << 20;
  // Where the input is part of the output: its first byte there.
  bool inPlace = false;
  size_t inPlaceOffset = 0;
  // Where it is, the output's own first byte in that memory: other than 0 where
  // the output is a part of the input.
  size_t outputOffset = 0;
};

// Immutable once built.
struct Program {
  std::vector<Action> actions;
  std::vector<uint32_t> waits;
  int window = 1;
  size_t scratchBytes = 0;
  size_t stageBytes = 0;
  size_t sendBytes = 0;  // totals of all sends and receives
  size_t recvBytes = 0;
};

// Bytes [begin, end) of a memory.
struct Extent {
  size_t begin = 0;
  size_t end = 0;
  size_t messages = 0;
  bool sent = false;  // messages come from there
  bool received = false;
};

// What messages of more than `bytes` use of a memory; empty: there are none.
Extent extentOfMessages(const Program& program, Memory memory, size_t bytes);

// Whether the executor posts a message before anything is copied or reduced:
// the first action, or what is received without a wait, which goes before.
bool postsFirst(const Program& program);

Program expand(const Schedule& schedule, const Layouts& layouts,
               const ExpandOptions& options);

// The same for steps from elsewhere: for tests of broken schedules.
Program expandSteps(const std::vector<Step>& steps, const Layouts& layouts,
                    const ExpandOptions& options);

}  // namespace algorithms
GLOO_NAMESPACE_END
