#include "gloo/internal/check.h"

#include <algorithm>
#include <string_view>

#include "algorithms/catalogue.h"
#include "gloo/common/string.h"
#include "gloo/internal/kernels.h"

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

// Widths in bits, lowest field first; 64 together.
constexpr int kOperationBits = 5;
constexpr int kTypeBits = 5;
constexpr int kReductionBits = 4;
constexpr int kSizeBits = 4;
constexpr int kAlgorithmBits = 6;
constexpr int kSequenceBits = 12;
constexpr int kRootBits = 8;
constexpr int kCountBits = 20;
static_assert(kOperationBits + kTypeBits + kReductionBits + kSizeBits +
                  kAlgorithmBits + kSequenceBits + kRootBits + kCountBits ==
              64);

static_assert(kSequenceShift == kOperationBits + kTypeBits + kReductionBits +
                                    kSizeBits + kAlgorithmBits &&
              CheckFields::kMaxSequence == (1 << kSequenceBits) - 1 &&
              CheckFields::kExactCounts == 1 << (kCountBits - 1));

constexpr uint64_t mask(int bits) { return (uint64_t{1} << bits) - 1; }

static_assert(kReductionShift == kOperationBits + kTypeBits &&
              kCountShift == 64 - kCountBits &&
              kGathervOperation == uint64_t(algorithms::Collective::kGatherv) &&
              kAlltoallvOperation ==
                  uint64_t(algorithms::Collective::kAlltoallv));

// Which way a part goes, in the bits of the reduction, which has no meaning
// there.
constexpr uint8_t kToHigher = 1;
constexpr uint8_t kToLower = 2;

// Zero means that a side does not know.
bool meet(unsigned a, unsigned b) { return a == b || a == 0 || b == 0; }

std::string_view nameOfOperation(uint8_t operation) {
  return operation == 0 ? "no collective"
                        : algorithms::nameOf(
                              static_cast<algorithms::Collective>(operation));
}

bool isHashed(uint32_t count) { return count >= CheckFields::kExactCounts; }

// What cuts a vector is in the hash as well, where it is not the usual one.
std::string nameOfCount(uint32_t count) {
  return !isHashed(count) ? MakeString(count)
                          : MakeString(
                                "others, or another element size, segment size "
                                "or base (hash ",
                                count & (CheckFields::kExactCounts - 1), ")");
}

// Elements of one part.
uint64_t countOf(const PartOf& part, const CheckDetails& details) {
  const auto& counts = part.sends ? details.sent : details.received;
  const auto peer = static_cast<size_t>(part.peer);
  return peer < counts.size() ? counts[peer] : 0;
}

bool isByPart(const CheckFields& f) { return internal::isByPart(f.operation); }

// "number of elements", and of which part.
std::string nameOfElements(const CheckFields& f, int one, int other) {
  if (!isByPart(f) || f.reduction == 0) {
    return "number of elements";
  }
  const auto [lower, higher] = std::minmax(one, other);
  const bool up = f.reduction == kToHigher;
  return MakeString("number of elements from rank ", up ? lower : higher,
                    " to rank ", up ? higher : lower);
}

class Difference {
 public:
  Difference(int one, int other) : one_(one), other_(other) {}

  template <typename T>
  void add(std::string_view field, const T& one, const T& other) {
    text_ += MakeString(text_.empty() ? "" : "; ", field, ": ", one,
                        " on rank ", one_, ", ", other, " on rank ", other_);
  }
  bool empty() const { return text_.empty(); }
  std::string text() const {
    return text_.empty() ? std::string("no difference") : text_;
  }

 private:
  const int one_;
  const int other_;
  std::string text_;
};

// True: one was found.
bool addCounts(Difference& d, const std::string& elements,
               const CheckDetails& a, const CheckDetails& b) {
  const auto [one, other] = std::mismatch(a.counts.begin(), a.counts.end(),
                                          b.counts.begin(), b.counts.end());
  if (one != a.counts.end() && other != b.counts.end()) {
    d.add(MakeString("number of elements of rank ", one - a.counts.begin()),
          *one, *other);
  } else if (a.count != b.count) {
    d.add(a.counts.empty() ? elements : "number of elements of all ranks",
          a.count, b.count);
  }
  return !d.empty();
}

// What the hashes of two words are of.
void addDetails(Difference& d, const std::string& elements,
                const CheckDetails& a, const CheckDetails& b) {
  const bool hadSome = !d.empty();
  const auto addIf = [&d](const char* field, uint64_t one, uint64_t other) {
    if (one != other) {
      d.add(field, one, other);
    }
  };
  addIf("root", a.root, b.root);
  addIf("element size (bytes)", a.elementSize, b.elementSize);
  addIf("number of vectors to average", a.vectors, b.vectors);
  // Vectors that differ are cut in different ways.
  if (!addCounts(d, elements, a, b) && !hadSome) {
    addIf("base", a.base, b.base);
    addIf("segment size (bytes)", a.segmentBytes, b.segmentBytes);
  }
}

void addHashed(Difference& d, const std::string& elements, const CheckFields& a,
               const CheckFields& b) {
  if (a.rootHash != b.rootHash) {
    d.add("root", int{a.rootHash}, int{b.rootHash});
  }
  if (a.countHash != b.countHash) {
    const bool isAverage = a.reduction == uint8_t(Reduction::kAverage);
    d.add(isAverage ? "number of elements, or of vectors to average" : elements,
          nameOfCount(a.countHash), nameOfCount(b.countHash));
  }
}

}  // namespace

bool nameTheField(uint64_t one, uint64_t other) {
  const CheckFields a = CheckFields::unpack(one);
  const CheckFields b = CheckFields::unpack(other);
  return a.operation != b.operation ||
         (a.rootHash == b.rootHash && a.countHash == b.countHash) ||
         (!isHashed(a.countHash) && !isHashed(b.countHash));
}

uint64_t CheckFields::pack() const {
  uint64_t word = 0;
  int at = 0;
  const auto put = [&](uint64_t value, int bits) {
    word |= (value & mask(bits)) << at;
    at += bits;
  };
  put(operation, kOperationBits);
  put(type, kTypeBits);
  put(reduction, kReductionBits);
  put(log2Size, kSizeBits);
  put(algorithm, kAlgorithmBits);
  put(sequence, kSequenceBits);
  put(rootHash, kRootBits);
  put(countHash, kCountBits);
  return word;
}

CheckFields CheckFields::unpack(uint64_t word) {
  const auto take = [&word](int bits) {
    const uint64_t value = word & mask(bits);
    word >>= bits;
    return value;
  };
  CheckFields f;
  f.operation = static_cast<uint8_t>(take(kOperationBits));
  f.type = static_cast<uint8_t>(take(kTypeBits));
  f.reduction = static_cast<uint8_t>(take(kReductionBits));
  f.log2Size = static_cast<uint8_t>(take(kSizeBits));
  f.algorithm = static_cast<uint8_t>(take(kAlgorithmBits));
  f.sequence = static_cast<uint16_t>(take(kSequenceBits));
  f.rootHash = static_cast<uint8_t>(take(kRootBits));
  f.countHash = static_cast<uint32_t>(take(kCountBits));
  return f;
}

PartOf partOf(uint64_t word, int rank, int peer) {
  const bool up = CheckFields::unpack(word).reduction == kToHigher;
  return {rank, peer, up == (peer > rank)};
}

uint64_t withPart(uint64_t word, const PartOf& part,
                  const CheckDetails* details) {
  if (details == nullptr || !isByPart(word)) {
    return word;
  }
  const uint64_t count = countOf(part, *details);
  const uint64_t beyond = details->root >> 8;
  const bool isOdd = CheckFields::isOddSize(details->elementSize);
  uint32_t field = CheckFields::exactCount(count);
  if (count >= CheckFields::kExactCounts || beyond != 0 || isOdd) {
    // Mixes well enough: 19 bits are left.
    constexpr uint64_t kMix = 0x9e3779b97f4a7c15;
    uint64_t hash = (count ^ beyond << 40) * kMix;
    hash = isOdd ? ((hash ^ hash >> 32) + details->elementSize) * kMix : hash;
    field = CheckFields::hashedCount(static_cast<uint32_t>(hash >> 32));
  }
  const bool up = part.sends == (part.peer > part.rank);
  return (word & ~kPartMask) | uint64_t{field} << kCountShift |
         uint64_t{up ? kToHigher : kToLower} << kReductionShift;
}

CheckDetailsPtr detailsOfPart(const PartOf& part, const CheckDetails& details) {
  auto told = std::make_shared<CheckDetails>(details);
  told->count = countOf(part, details);
  told->sent.clear();
  told->received.clear();
  return told;
}

bool checksAgree(uint64_t mine, uint64_t theirs) {
  if (mine == theirs) {
    return true;
  }
  const CheckFields a = CheckFields::unpack(mine);
  const CheckFields b = CheckFields::unpack(theirs);
  return a.operation == b.operation && meet(a.type, b.type) &&
         meet(a.reduction, b.reduction) && a.log2Size == b.log2Size &&
         a.algorithm == b.algorithm && meet(a.sequence, b.sequence) &&
         a.rootHash == b.rootHash && a.countHash == b.countHash;
}

std::string describeDisagreement(const Statement& one, const Statement& other,
                                 const CheckDetails* ofOne,
                                 const CheckDetails* ofOther) {
  const CheckFields a = CheckFields::unpack(one.word);
  const CheckFields b = CheckFields::unpack(other.word);
  Difference d(one.rank, other.rank);
  if (a.operation != b.operation) {
    d.add("operation", nameOfOperation(a.operation),
          nameOfOperation(b.operation));
    return d.text();  // the other fields have no meaning in common
  }
  if (!meet(a.type, b.type)) {
    d.add("element type", nameOf(static_cast<ElementType>(a.type)),
          nameOf(static_cast<ElementType>(b.type)));
  }
  if (!isByPart(a) && !meet(a.reduction, b.reduction)) {
    d.add("reduction", nameOf(static_cast<Reduction>(a.reduction)),
          nameOf(static_cast<Reduction>(b.reduction)));
  }
  if (a.log2Size != b.log2Size) {
    d.add("element size (bytes, rounded up to a power of two)",
          1u << a.log2Size, 1u << b.log2Size);
  }
  if (a.algorithm != b.algorithm) {
    d.add("algorithm", algorithms::nameOfAlgorithm(a.algorithm),
          algorithms::nameOfAlgorithm(b.algorithm));
  }
  const std::string elements = nameOfElements(a, one.rank, other.rank);
  if (ofOne != nullptr && ofOther != nullptr &&
      !nameTheField(one.word, other.word)) {
    addDetails(d, elements, *ofOne, *ofOther);
  } else {
    addHashed(d, elements, a, b);
  }
  if (!meet(a.sequence, b.sequence)) {
    d.add("sequence number of the tag", a.sequence, b.sequence);
  }
  return d.text();
}

std::string describeCheck(uint64_t word, const CheckDetails* details) {
  const CheckFields f = CheckFields::unpack(word);
  std::string text(nameOfOperation(f.operation));
  if (f.operation == 0) {
    return text;
  }
  if (details != nullptr) {
    text += MakeString(" of ", details->count);
  } else if (!isHashed(f.countHash) && (!isByPart(f) || f.reduction != 0)) {
    text += MakeString(" of ", f.countHash);
  }
  text += f.type != 0
              ? MakeString(" ", nameOf(static_cast<ElementType>(f.type)))
              : MakeString(" elements of up to ", 1u << f.log2Size, " bytes");
  if (f.reduction != 0 && !isByPart(f)) {
    text += MakeString(", ", nameOf(static_cast<Reduction>(f.reduction)));
  }
  if (algorithms::hasRoot(static_cast<algorithms::Collective>(f.operation))) {
    text += MakeString(", root ", int{f.rootHash});
  }
  return text + MakeString(", by ", algorithms::nameOfAlgorithm(f.algorithm));
}

}  // namespace internal
GLOO_NAMESPACE_END
