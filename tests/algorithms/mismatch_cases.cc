#include "tests/algorithms/mismatch_cases.h"

#include "algorithms/catalogue.h"
#include "gloo/common/string.h"
#include "tests/algorithms/mismatch_oracle.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using algorithms::AlgorithmInfo;
using algorithms::nameOf;
using internal::Reduction;
using Values = std::optional<std::pair<size_t, size_t>>;

const size_t kCount = callOf(Collective::kAllreduce).call.count;

void addEachRank(Cases& cases, const RankCall& call, const RankCall& other,
                 const std::string& named, const Values& values = {},
                 const std::optional<Named>& orNamed = std::nullopt) {
  for (int odd = 0; odd < kRanks; odd++) {
    cases.push_back({call, other, odd, {named, values}, orNamed});
  }
}

// Those that the caller may ask for.
std::vector<const char*> namesOf(Collective collective) {
  std::vector<const char*> names;
  for (const AlgorithmInfo& info : algorithms::algorithmsOf(collective)) {
    // A barrier's options have no algorithm.
    if (collective != Collective::kBarrier && info.offers({0, kRanks, 0, 2})) {
      names.push_back(info.name.data());
    }
  }
  return names;
}

// Long enough to be cut.
RankCall cutCall(Collective collective, const char* algorithm) {
  RankCall call = callOf(collective);
  call.call.count = 5000;
  call.call.algorithm = algorithm;
  return call;
}

}  // namespace

std::vector<RankCall> Case::calls() const {
  std::vector<RankCall> all(kRanks, call);
  all[static_cast<size_t>(odd)] = other;
  return all;
}

std::string Case::str() const {
  const auto nameOfAlgorithm = [](const RankCall& c) {
    return c.call.algorithm == nullptr ? "any" : c.call.algorithm;
  };
  return MakeString(nameOf(call.collective), ", but ", nameOf(other.collective),
                    " on rank ", odd, ": ", named.field, ", root ",
                    call.call.root, " and ", other.call.root, ", by ",
                    nameOfAlgorithm(call), " and ", nameOfAlgorithm(other));
}

bool isDirect(const RankCall& call, bool direct) {
  return MismatchOracle({kRanks, call}, direct).isDirect();
}

Cases operations(Collective collective, bool) {
  Cases cases;
  for (const Collective other : kCollectives) {
    if (other != collective) {
      addEachRank(cases, callOf(collective), callOf(other), "operation: ");
    }
  }
  return cases;
}

// Also where a rank's counts are its own business: each part's is compared.
Cases counts(Collective collective, bool) {
  Cases cases;
  for (const size_t count : {size_t{6}, size_t{0}, size_t{1} << 20}) {
    RankCall other = callOf(collective);
    other.call.count = count;
    if (collective != Collective::kBarrier) {
      addEachRank(cases, callOf(collective), other, "number of elements",
                  Values({kCount, count}));
    }
  }
  return cases;
}

Cases types(Collective collective, bool) {
  Cases cases;
  const RankCall call = callOf(collective);
  RankCall other = call;
  if (collective != Collective::kBarrier) {
    other.type = RankCall::kInt32;
    addEachRank(cases, call, other, "element type: ");
    other.type = RankCall::kInt64;
    addEachRank(cases, call, other, "element type: ");
    other.type = RankCall::kForeign8;
    addEachRank(cases, call, other, "element size");
  }
  return cases;
}

Cases reductions(Collective collective, bool) {
  Cases cases;
  for (const Reduction reduction : {Reduction::kProduct, Reduction::kMin,
                                    Reduction::kMax, Reduction::kAverage}) {
    RankCall other = callOf(collective);
    other.call.reduction = reduction;
    if (reduces(collective)) {
      addEachRank(cases, callOf(collective), other, "reduction: ");
    }
  }
  return cases;
}

// An average is divided by their number.
Cases vectors(Collective collective, bool) {
  Cases cases;
  RankCall call = callOf(collective);
  call.call.reduction = Reduction::kAverage;
  RankCall other = call;
  other.call.vectors = 2;
  if (collective == Collective::kAllreduce) {
    addEachRank(cases, call, other, "vectors to average: ", Values({1, 2}));
  }
  return cases;
}

Cases algorithmNames(Collective collective, bool direct) {
  std::vector<const char*> names = namesOf(collective);
  // What runs in mapped memory if nothing is asked for.
  if (isDirect(callOf(collective), direct)) {
    names.push_back(nullptr);
  }
  Cases cases;
  for (const char* one : names) {
    for (const char* two : names) {
      RankCall call = callOf(collective);
      RankCall other = call;
      call.call.algorithm = one;
      other.call.algorithm = two;
      if (one != two) {
        addEachRank(cases, call, other, "algorithm: ");
      }
    }
  }
  return cases;
}

// The caller sets it where there is a reduction.
Cases segments(Collective collective, bool) {
  Cases cases;
  for (const char* one : namesOf(collective)) {
    for (const char* two : namesOf(collective)) {
      RankCall call = cutCall(collective, one);
      RankCall other = cutCall(collective, two);
      call.call.segment = 4096;
      other.call.segment = 1024;
      if (!reduces(collective)) {
        continue;
      }
      if (one == two) {
        addEachRank(cases, call, other,
                    "segment size (bytes): ", Values({4096, 1024}));
      } else {
        addEachRank(cases, call, other, "algorithm: ");
      }
    }
  }
  return cases;
}

// Of bcube; no other algorithm has one.
Cases bases(Collective collective, bool) {
  Cases cases;
  for (const char* name : namesOf(collective)) {
    const AlgorithmInfo* const info =
        algorithms::findAlgorithm(collective, name);
    RankCall call = cutCall(collective, info->name.data());
    RankCall other = call;
    other.base = 3;
    if (info->usesRadix) {
      addEachRank(cases, call, other, "base: ", Values({2, 3}));
      other.call.segment = 1024;
      addEachRank(cases, call, other, "segment size (bytes): ");
      other.call.algorithm = "ring";
      addEachRank(cases, call, other, "algorithm: ");
    }
  }
  return cases;
}

Cases roots(Collective collective, bool) {
  Cases cases;
  for (int root = 0; root < kRanks && isRooted(collective); root++) {
    for (int step = 1; step < kRanks; step++) {
      RankCall call = callOf(collective);
      RankCall other = call;
      call.call.root = root;
      other.call.root = (root + step) % kRanks;
      addEachRank(cases, call, other, "root: ");
    }
  }
  return cases;
}

Cases withoutElements(Collective collective, bool) {
  Cases cases;
  for (const Collective other : kCollectives) {
    if (collective != Collective::kBarrier && other != Collective::kBarrier) {
      cases.push_back({emptyOf(callOf(collective)),
                       emptyOf(callOf(other)),
                       1,
                       {"operation: "}});
    }
  }
  return cases;
}

// One rank has missed a call with this tag, or makes one more.
Cases sequences(Collective collective, bool) {
  Cases cases;
  const RankCall call = callOf(collective);
  RankCall other = call;
  other.before = 1;
  // Whoever has missed it compares that one with another of its own, unless the
  // next one's message meets its receive before.
  const bool isBarrier = collective == Collective::kBarrier;
  const auto add = [&](const RankCall& usual, const RankCall& odd) {
    const auto countOf = [](const RankCall& c) {
      return c.before > 0 ? 0 : kCount;
    };
    const auto numberOf = [](const RankCall& c) {
      return static_cast<size_t>(c.before) + 1;
    };
    addEachRank(cases, usual, odd,
                isBarrier ? "operation: " : "number of elements",
                isBarrier ? Values() : Values({countOf(usual), countOf(odd)}),
                Named{"sequence number of the tag: ",
                      Values({numberOf(usual), numberOf(odd)})});
  };
  add(call, other);
  add(other, call);
  return cases;
}

}  // namespace test
GLOO_NAMESPACE_END
