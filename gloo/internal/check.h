// The 8 bytes by which ranks notice that they disagree about a collective.
// They travel in the header of a collective's messages, adverts and
// announcements and are compared when these arrive: no extra message, but for
// who waits for long and says what for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// Bit fields of a check word; 0 as a whole means "not a collective".
struct CheckFields {
  uint8_t operation = 0;  // 5 bits; 1..: see algorithms/
  uint8_t type = 0;       // 5 bits; 0: unknown
  // 4 bits; 0: unknown. Of a part (see isByPart()): which way it goes.
  uint8_t reduction = 0;
  uint8_t log2Size = 0;    // 4 bits; of the element size, rounded up
  uint8_t algorithm = 0;   // 6 bits
  uint16_t sequence = 0;   // 12 bits; per tag
  uint16_t rootHash = 0;   // 8 bits
  uint32_t countHash = 0;  // 20 bits; counts that all ranks share, or a part's

  // Of a size that log2Size does not tell: hashed with the counts.
  static constexpr bool isOddSize(size_t elementSize) {
    return !std::has_single_bit(elementSize) || elementSize > size_t{1} << 15;
  }

  GLOO_API uint64_t pack() const;
  GLOO_API static CheckFields unpack(uint64_t word);

  // One count below kExactCounts stands for itself, so that it can be named;
  // anything else is hashed.
  static constexpr uint64_t kExactCounts = uint64_t{1} << 19;
  static constexpr uint32_t exactCount(uint64_t count) {
    return static_cast<uint32_t>(count);
  }
  static constexpr uint32_t hashedCount(uint32_t hash) {
    return static_cast<uint32_t>(kExactCounts |
                                 (hash & uint32_t{kExactCounts - 1}));
  }
  static constexpr uint16_t kMaxSequence = 4095;
};

constexpr int kSequenceShift = 24;  // of the field in the word

constexpr uint16_t sequenceOf(uint64_t word) {
  return word >> kSequenceShift & CheckFields::kMaxSequence;
}
// Of the tag's next operation.
constexpr uint16_t sequenceAfter(uint16_t sequence) {
  return sequence == CheckFields::kMaxSequence
             ? uint16_t{1}
             : static_cast<uint16_t>(sequence + 1);
}
constexpr uint64_t withSequence(uint64_t word, uint16_t sequence) {
  constexpr uint64_t kMask = uint64_t{CheckFields::kMaxSequence}
                             << kSequenceShift;
  return (word & ~kMask) | uint64_t{sequence} << kSequenceShift;
}

// Where a rank knows only its own counts - of gatherv and alltoallv - the words
// of messages, adverts and what is awaited carry the count of the part that
// they belong to: what the one of the two ranks has for the other. What all
// ranks say alike is the rest.
constexpr uint64_t kGathervOperation = 7;
constexpr uint64_t kAlltoallvOperation = 13;
constexpr bool isByPart(uint64_t word) {
  const uint64_t operation = word & 0x1f;
  return operation == kGathervOperation || operation == kAlltoallvOperation;
}
constexpr int kReductionShift = 10;
constexpr int kCountShift = 44;
constexpr uint64_t kPartMask =
    ~uint64_t{0} << kCountShift | uint64_t{0xf} << kReductionShift;
// Without the part.
constexpr uint64_t sharedPart(uint64_t word) {
  return isByPart(word) ? word & ~kPartMask : word;
}
constexpr bool isOfPart(uint64_t word) {
  return isByPart(word) && (word & kPartMask) != 0;
}

// Operations with one tag follow each other, whatever they are: the prefixes of
// the collectives (below kFirstOwnPrefix) share their tags. Under any other
// prefix tags are of their own.
constexpr uint8_t kFirstOwnPrefix = 0x10;
constexpr uint64_t tagOf(uint64_t slot) {
  const uint64_t tag = slot >> 24;
  return tag >> 32 < kFirstOwnPrefix ? tag & 0xffffffff : tag;
}

// Whether two words may meet; unknown types, reductions and sequence numbers
// agree with all.
GLOO_API bool checksAgree(uint64_t mine, uint64_t theirs);

// A word, and the rank that it is of.
struct Statement {
  int rank = -1;
  uint64_t word = 0;
};

// What the hashes of a word stand for. Told only when words contradict.
struct CheckDetails {
  uint64_t count = 0;         // of elements; of a list of counts: all of them
  uint64_t segmentBytes = 0;  // that the vector is cut into
  uint32_t base = 2;
  uint32_t vectors = 1;  // that an average is of
  uint32_t root = 0;
  uint64_t elementSize = 1;
  std::vector<uint64_t> counts;  // a list's, the first kMostCounts of them
  // Of an operation by part: elements for each rank, and from each. Not told:
  // what is told of it is one part, as `count`.
  std::vector<uint64_t> sent;
  std::vector<uint64_t> received;

  static constexpr size_t kMostCounts = 128;
};
using CheckDetailsPtr = std::shared_ptr<const CheckDetails>;

// One part, as one of its two ranks sees it.
struct PartOf {
  int rank = -1;
  int peer = -1;
  bool sends = false;  // from rank to peer
};
// Of this word's: as `rank` sees it.
GLOO_API PartOf partOf(uint64_t word, int rank, int peer);
// The word of that part's messages. `word`: what the operation began with;
// `details` of it, or null: it stays as it is.
GLOO_API uint64_t withPart(uint64_t word, const PartOf& part,
                           const CheckDetails* details);
// What a word of a part stands for, by the details of the operation.
GLOO_API CheckDetailsPtr detailsOfPart(const PartOf& part,
                                       const CheckDetails& details);

// Two ranks' words for one operation, which do not agree: this one's, and what
// that stands for, and another's.
struct Contradiction {
  uint64_t slot = 0;
  Statement mine;
  CheckDetailsPtr details;
  Statement theirs;
};

// Whether two words that contradict say in what; else the details do.
GLOO_API bool nameTheField(uint64_t one, uint64_t other);

// "operation: allreduce on rank 0, broadcast on rank 2": for the exception's
// text. Null: not known.
GLOO_API std::string describeDisagreement(
    const Statement& one, const Statement& other,
    const CheckDetails* ofOne = nullptr, const CheckDetails* ofOther = nullptr);

// All that a word says: "allreduce of 100 float32, sum, by ring".
GLOO_API std::string describeCheck(uint64_t word,
                                   const CheckDetails* details = nullptr);

}  // namespace internal
GLOO_NAMESPACE_END
