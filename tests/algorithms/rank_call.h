// One rank's call of a collective of the API, where other ranks may call
// another one.
#pragma once

#include <memory>
#include <string>

#include "algorithms/catalogue.h"
#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "tests/support/collectives.h"

GLOO_NAMESPACE_BEGIN
namespace test {

using algorithms::Collective;

constexpr Collective kCollectives[] = {
    Collective::kAllreduce,     Collective::kReduce,
    Collective::kBroadcast,     Collective::kScatter,
    Collective::kGather,        Collective::kGatherv,
    Collective::kAllgather,     Collective::kAllgatherv,
    Collective::kReduceScatter, Collective::kReduceScatterv,
    Collective::kAlltoall,      Collective::kAlltoallv,
    Collective::kBarrier,
};

struct RankCall {
  enum Type { kInt32, kInt64, kFloat, kForeign8 };

  Collective collective = Collective::kAllreduce;
  Type type = kFloat;
  // Of 5 elements, each block where blocks may differ.
  testing_support::Call call{5, 0, false, 9, 0, true};
  // Calls with this tag before, of no elements.
  int before = 0;
  // Of the context.
  int base = 2;
};

inline bool isV(Collective c) {
  return c == Collective::kGatherv || c == Collective::kAllgatherv ||
         c == Collective::kReduceScatterv || c == Collective::kAlltoallv;
}
inline bool reduces(Collective c) {
  return c == Collective::kAllreduce || c == Collective::kReduce ||
         c == Collective::kReduceScatter || c == Collective::kReduceScatterv;
}
// The tests' own, not the library's hasRoot: else they would share its
// mistakes.
inline bool isRooted(Collective c) {
  return c == Collective::kReduce || c == Collective::kBroadcast ||
         c == Collective::kScatter || c == Collective::kGather ||
         c == Collective::kGatherv;
}

inline RankCall callOf(Collective collective) {
  RankCall call;
  call.collective = collective;
  return call;
}

// The first of the calls that `call.before` counts.
inline RankCall emptyOf(RankCall call) {
  if (call.collective == Collective::kBarrier) {
    call.collective = Collective::kAllreduce;
  }
  call.call.count = 0;
  call.before = 0;
  return call;
}

template <typename T>
std::string callAs(const std::shared_ptr<Context>& context,
                   const RankCall& call) {
  // checkCollective() has them in the order of kCollectives.
  for (size_t which = 0; which < testing_support::kChecks; which++) {
    if (kCollectives[which] == call.collective) {
      return testing_support::checkCollective<T>(which, context, call.call);
    }
  }
  BarrierOptions opts(context);
  opts.setTag(call.call.tag);
  barrier(opts);
  return {};
}

// What is wrong with the result, as if all ranks had made this call; empty if
// nothing.
inline std::string perform(const std::shared_ptr<Context>& context,
                           const RankCall& call) {
  switch (call.type) {
    case RankCall::kInt32:
      return callAs<int32_t>(context, call);
    case RankCall::kInt64:
      return callAs<int64_t>(context, call);
    case RankCall::kForeign8:
      return callAs<testing_support::Foreign<8>>(context, call);
    case RankCall::kFloat:
      break;
  }
  return callAs<float>(context, call);
}

}  // namespace test
GLOO_NAMESPACE_END
