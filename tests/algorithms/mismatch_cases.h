// What ranks may disagree about: the matrix of mismatch_test.cc.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/algorithms/rank_call.h"

GLOO_NAMESPACE_BEGIN
namespace test {

constexpr int kRanks = 3;

// What the error has: a field, and its values of `call` and of `other`.
struct Named {
  std::string field;
  std::optional<std::pair<size_t, size_t>> values = std::nullopt;
};

// Rank `odd` makes the call `other`, all others make `call`.
struct Case {
  RankCall call;
  RankCall other;
  int odd = 0;
  Named named;
  // Where it depends on what comes first.
  std::optional<Named> orNamed = std::nullopt;

  std::vector<RankCall> calls() const;
  std::string str() const;
};
using Cases = std::vector<Case>;

// In mapped memory: `direct` says that there is some.
bool isDirect(const RankCall& call, bool direct);

// Those of one field, for one collective.
using Field = Cases (*)(Collective collective, bool direct);
Cases operations(Collective collective, bool direct);
Cases counts(Collective collective, bool direct);
Cases types(Collective collective, bool direct);
Cases reductions(Collective collective, bool direct);
Cases vectors(Collective collective, bool direct);
Cases algorithmNames(Collective collective, bool direct);
// With and without other algorithms.
Cases segments(Collective collective, bool direct);
Cases bases(Collective collective, bool direct);
Cases roots(Collective collective, bool direct);
Cases withoutElements(Collective collective, bool direct);
Cases sequences(Collective collective, bool direct);

constexpr Field kFields[] = {operations, counts,          types,    reductions,
                             vectors,    algorithmNames,  segments, bases,
                             roots,      withoutElements, sequences};

}  // namespace test
GLOO_NAMESPACE_END
