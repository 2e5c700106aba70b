#include "algorithms/plan.h"

#include <algorithm>
#include <bit>
#include <cstring>

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

std::vector<size_t> copyOf(const size_t* offsets, int size) {
  return offsets == nullptr ? std::vector<size_t>()
                            : std::vector<size_t>(offsets, offsets + size + 1);
}

bool equal(const size_t* a, const size_t* b, int size) {
  return a == b ||
         (a != nullptr && b != nullptr && std::equal(a, a + size + 1, b));
}

bool equal(const char* a, const char* b) {
  return a == b || (a != nullptr && b != nullptr && std::strcmp(a, b) == 0);
}

// FNV-1a on 64-bit words, folded.
class Hash {
 public:
  void add(uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3; }
  uint32_t value() const {
    return static_cast<uint32_t>(value_ ^ (value_ >> 23) ^ (value_ >> 43));
  }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

// Of the counts that all ranks know; null: there is no list.
const size_t* sharedOffsets(const Request& request) {
  return request.collective == Collective::kAllgatherv
             ? request.counts.recvOffsets
         : request.collective == Collective::kReduceScatterv
             ? request.counts.sendOffsets
             : nullptr;
}

bool isByPart(Collective collective) {
  return internal::isByPart(static_cast<uint64_t>(collective));
}

// What a rank has for each other one, of its own counts.
void addParts(const Request& request, int rank, int size,
              internal::CheckDetails& details) {
  details.sent.resize(static_cast<size_t>(size));
  details.received.resize(static_cast<size_t>(size));
  const auto partsOf = [size](const size_t* offsets,
                              std::vector<uint64_t>& parts) {
    for (int peer = 0; offsets != nullptr && peer < size; peer++) {
      parts[static_cast<size_t>(peer)] = offsets[peer + 1] - offsets[peer];
    }
  };
  if (request.collective == Collective::kAlltoallv) {
    partsOf(request.counts.sendOffsets, details.sent);
    partsOf(request.counts.recvOffsets, details.received);
  } else if (rank == request.root) {
    partsOf(request.counts.recvOffsets, details.received);
  } else {
    // Either way, as for layoutsOf().
    const size_t* const offsets = request.counts.recvOffsets;
    details.sent[static_cast<size_t>(request.root)] =
        offsets != nullptr ? offsets[rank + 1] - offsets[rank]
                           : request.counts.count;
  }
}

// Of what all ranks know. (A root beyond its 8 bits, an odd element size, the
// number of vectors that an average is of, and a cut that is not the usual one
// are mixed in.)
uint32_t hashOfCounts(const Request& request, int size, uint64_t cut) {
  // Where each rank has counts of its own, the words of parts have them.
  if (isByPart(request.collective)) {
    return internal::CheckFields::exactCount(0);
  }
  const size_t* const offsets = sharedOffsets(request);
  const uint64_t count = request.counts.count;
  const auto beyond = static_cast<uint64_t>(request.root) >> 8;
  const bool isOdd = internal::CheckFields::isOddSize(request.elementSize);
  if (offsets == nullptr && beyond == 0 && request.vectors <= 1 && cut == 0 &&
      !isOdd && count < internal::CheckFields::kExactCounts) {
    return internal::CheckFields::exactCount(count);
  }
  Hash hash;
  hash.add(count);
  hash.add(beyond);
  if (isOdd) {
    hash.add(request.elementSize);
  }
  if (request.vectors > 1) {
    hash.add(request.vectors);
  }
  if (cut != 0) {
    hash.add(cut);
  }
  if (offsets != nullptr) {
    std::for_each(offsets, offsets + size + 1,
                  [&](size_t offset) { hash.add(offset); });
  }
  return internal::CheckFields::hashedCount(hash.value());
}

}  // namespace

internal::CheckDetailsPtr detailsOf(const Request& request, int rank, int size,
                                    const Cut& cut) {
  auto details = std::make_shared<internal::CheckDetails>();
  details->count = request.counts.count;
  if (const size_t* const offsets = sharedOffsets(request)) {
    constexpr auto kMost =
        static_cast<int>(internal::CheckDetails::kMostCounts);
    details->count = offsets[size] - offsets[0];
    for (int rank = 0; rank < std::min(size, kMost); rank++) {
      details->counts.push_back(offsets[rank + 1] - offsets[rank]);
    }
  }
  details->segmentBytes = cut.segmentBytes;
  details->base = static_cast<uint32_t>(cut.base);
  details->vectors = static_cast<uint32_t>(request.vectors);
  details->root = static_cast<uint32_t>(request.root);
  details->elementSize = request.elementSize;
  if (isByPart(request.collective)) {
    addParts(request, rank, size, *details);
  }
  return details;
}

Plan::Plan(const Request& request, int rank, int size,
           const Selection& selection, size_t eagerBytes)
    : size_(size),
      request_(request),
      sendOffsets_(copyOf(request.counts.sendOffsets, size)),
      recvOffsets_(copyOf(request.counts.recvOffsets, size)),
      forced_(request.forced != nullptr ? request.forced : ""),
      program_(makeProgram(rank, selection)),
      longInput_(extentOfMessages(program_, Memory::kInput, eagerBytes)),
      longOutput_(extentOfMessages(program_, Memory::kOutput, eagerBytes)),
      check_(checkOf(request_, size, algorithm_->id, cut_.hash)),
      details_(detailsOf(request_, rank, size, cut_)),
      executor_(program_) {}

bool Plan::serves(const Request& r) const {
  const Request& mine = request_;
  return mine.collective == r.collective &&
         mine.counts.count == r.counts.count &&
         mine.elementSize == r.elementSize && mine.type == r.type &&
         mine.reduction == r.reduction && mine.vectors == r.vectors &&
         mine.inPlace == r.inPlace && mine.inPlaceOffset == r.inPlaceOffset &&
         mine.outputOffset == r.outputOffset &&
         mine.copiesInput == r.copiesInput && mine.root == r.root &&
         mine.maxSegmentBytes == r.maxSegmentBytes &&
         mine.stageBytes == r.stageBytes && equal(mine.forced, r.forced) &&
         mine.radix == r.radix &&
         equal(mine.counts.sendOffsets, r.counts.sendOffsets, size_) &&
         equal(mine.counts.recvOffsets, r.counts.recvOffsets, size_);
}

const Footprint& Plan::inputFootprint() {
  if (!inputFootprint_) {
    inputFootprint_ = footprintOf(program_, Memory::kInput);
  }
  return *inputFootprint_;
}

const Footprint& Plan::outputFootprint() {
  if (!outputFootprint_) {
    outputFootprint_ = footprintOf(program_, Memory::kOutput);
  }
  return *outputFootprint_;
}

Program Plan::makeProgram(int rank, const Selection& selection) {
  if (!sendOffsets_.empty()) {
    request_.counts.sendOffsets = sendOffsets_.data();
  }
  if (!recvOffsets_.empty()) {
    request_.counts.recvOffsets = recvOffsets_.data();
  }
  if (request_.forced != nullptr) {
    request_.forced = forced_.c_str();
  }
  const Setting setting{rank, size_, request_.root, request_.radix,
                        selection.hosts()};
  const Choice choice = selection.choose(
      request_.collective, setting,
      sharedBytes(request_.collective, size_, request_.counts,
                  request_.elementSize),
      request_.forced, request_.maxSegmentBytes, request_.elementSize);
  algorithm_ = choice.algorithm;
  cut_ = cutOf(choice, setting, selection);
  ExpandOptions options;
  options.elementSize = request_.elementSize;
  options.segmentBytes = choice.segmentBytes;
  options.window = choice.window;
  options.stripBytes = choice.stripBytes;
  options.stageBytes = request_.stageBytes;
  options.inPlace = request_.inPlace;
  options.inPlaceOffset = request_.inPlaceOffset;
  options.outputOffset = request_.outputOffset;
  const Layouts layouts = layoutsOf(*algorithm_, setting, request_.counts);
  inputBytes_ = layouts.input.elements * request_.elementSize;
  outputBytes_ = layouts.output.elements * request_.elementSize;
  copiedBytes_ = request_.copiesInput ? inputBytes_ : 0;
  return expand(algorithm_->schedule(setting), layouts, options);
}

// The hash: of what is not as on ranks that say nothing of it, the longest
// segment and the radix.
Cut Plan::cutOf(const Choice& choice, const Setting& setting,
                const Selection& selection) const {
  const size_t bytes = sharedBytes(request_.collective, size_, request_.counts,
                                   request_.elementSize);
  const auto segmentOf = [&](const Choice& c) {
    return std::min(c.segmentBytes, bytes);
  };
  constexpr size_t kUsualLimit = Request().maxSegmentBytes;
  size_t usual = segmentOf(choice);
  if (request_.maxSegmentBytes != kUsualLimit) {
    usual = segmentOf(selection.estimate(*choice.algorithm, setting, bytes,
                                         kUsualLimit, request_.elementSize));
  }
  const int radix =
      choice.algorithm->usesRadix ? std::min(setting.radix, size_) : 2;
  Cut cut{segmentOf(choice), std::max(2, radix), 0};
  if (cut.segmentBytes != usual || cut.base > 2) {
    Hash hash;
    hash.add(cut.segmentBytes);
    hash.add(static_cast<uint64_t>(cut.base));
    cut.hash = uint64_t{hash.value()} + 1;
  }
  return cut;
}

Extent extentOfMessages(const Program& program, Memory memory, size_t bytes) {
  Extent extent{SIZE_MAX, 0};
  for (const Action& action : program.actions) {
    const Place& place =
        action.kind == ActionKind::kSend ? action.source : action.target;
    const bool travels =
        action.kind == ActionKind::kSend || action.kind == ActionKind::kRecv;
    if (travels && action.bytes > bytes && place.memory == memory) {
      extent.begin = std::min(extent.begin, place.offset);
      extent.end = std::max(extent.end, place.offset + action.bytes);
      (action.kind == ActionKind::kSend ? extent.sent : extent.received) = true;
      extent.messages++;
    }
  }
  return extent.messages > 0 ? extent : Extent{};
}

uint64_t checkOf(const Request& request, int size, uint8_t algorithm,
                 uint64_t cut) {
  internal::CheckFields fields;
  fields.operation = static_cast<uint8_t>(request.collective);
  fields.type = static_cast<uint8_t>(request.type);
  // Functions that the library does not know may all be the same.
  fields.reduction = request.reduction == internal::Reduction::kCustom
                         ? 0
                         : static_cast<uint8_t>(request.reduction);
  fields.log2Size = static_cast<uint8_t>(
      std::min<int>(15, std::bit_width(request.elementSize - 1)));
  fields.algorithm = algorithm;
  fields.rootHash = static_cast<uint8_t>(request.root);
  fields.countHash = hashOfCounts(request, size, cut);
  return fields.pack();
}

}  // namespace algorithms
GLOO_NAMESPACE_END
