// A program that is ready to run, and what it was made for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/executor.h"
#include "algorithms/footprint.h"
#include "algorithms/program.h"
#include "algorithms/selection.h"
#include "gloo/internal/check.h"
#include "gloo/internal/kernels.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// What a plan depends on, apart from the context. Borrows `forced` and the
// offsets.
struct Request {
  Collective collective = Collective::kBarrier;
  internal::ElementType type = internal::ElementType::kUnknown;
  internal::Reduction reduction = internal::Reduction::kUnknown;
  // Of an average: how many the rank reduces first, which all divide by.
  size_t vectors = 1;
  bool inPlace = false;
  int root = 0;
  size_t elementSize = 1;
  Counts counts;
  // Bytes; see ExpandOptions.
  size_t inPlaceOffset = 0;
  size_t outputOffset = 0;
  // The run works on a copy of the input: it is the output's memory.
  bool copiesInput = false;
  size_t maxSegmentBytes = 1 << 20;
  // As in ExpandOptions. What waits to be reduced should still be in a core's
  // own cache then.
  size_t stageBytes = 2 << 20;
  const char* forced = nullptr;  // algorithm; null: by cost
  int radix = 2;                 // Context::base, of bcube
};

// The word by which ranks see that they agree about it; see Channel::begin.
// `cut`: stands for how the schedule cuts the vector; 0: as usual.
uint64_t checkOf(const Request& request, int size, uint8_t algorithm,
                 uint64_t cut = 0);

// How the schedule cuts the vector; `hash`: as checkOf() takes it.
struct Cut {
  size_t segmentBytes = 0;
  int base = 2;
  uint64_t hash = 0;
};

// Of the word, for who contradicts it. `cut` of a schedule that cuts nothing:
// none.
internal::CheckDetailsPtr detailsOf(const Request& request, int rank, int size,
                                    const Cut& cut = {});

// One thread at a time.
class Plan {
 public:
  // `eagerBytes`: longer messages need registered memory, where any does.
  Plan(const Request& request, int rank, int size, const Selection& selection,
       size_t eagerBytes);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  bool serves(const Request& request) const;
  // Of a call with a count for each rank, which may be others each time.
  bool isListed() const {
    return request_.counts.sendOffsets != nullptr ||
           request_.counts.recvOffsets != nullptr;
  }

  const AlgorithmInfo& algorithm() const { return *algorithm_; }
  const Program& program() const { return program_; }
  Executor& executor() { return executor_; }
  uint64_t check() const { return check_; }
  // Of the word.
  const internal::CheckDetailsPtr& details() const { return details_; }
  // Of the stage and the schedule's scratch, then a copy of the input.
  size_t scratchBytes() const {
    return program_.stageBytes + program_.scratchBytes + copiedBytes_;
  }
  // 0: the run takes the caller's input as it is.
  size_t copiedBytes() const { return copiedBytes_; }

  // Of the caller's vectors, where the call has them.
  size_t inputBytes() const { return inputBytes_; }
  size_t outputBytes() const { return outputBytes_; }
  // Of the caller's memory, what long messages come from and go to.
  const Extent& longInput() const { return longInput_; }
  const Extent& longOutput() const { return longOutput_; }
  // Reckoned when first asked for.
  const Footprint& inputFootprint();
  const Footprint& outputFootprint();

  // For the owner's bookkeeping.
  bool inUse = false;
  uint64_t slot = 0;
  uint64_t lastUse = 0;

 private:
  Program makeProgram(int rank, const Selection& selection);
  Cut cutOf(const Choice& choice, const Setting& setting,
            const Selection& selection) const;

  const int size_;
  Request request_;
  std::vector<size_t> sendOffsets_;
  std::vector<size_t> recvOffsets_;
  // The caller's may lie in a library that is unloaded before the plan goes.
  const std::string forced_;
  const AlgorithmInfo* algorithm_ = nullptr;
  size_t inputBytes_ = 0;
  size_t outputBytes_ = 0;
  size_t copiedBytes_ = 0;
  Cut cut_;
  const Program program_;
  const Extent longInput_;
  const Extent longOutput_;
  std::optional<Footprint> inputFootprint_;
  std::optional<Footprint> outputFootprint_;
  const uint64_t check_;
  const internal::CheckDetailsPtr details_;
  Executor executor_;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
