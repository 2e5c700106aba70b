// What must hold for ranks on several hosts: they know who shares one, the
// hierarchical algorithms give the right results, and the same bits everywhere.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/internal/channel.h"
#include "gloo/internal/collective_state.h"
#include "gloo/internal/profile.h"
#include "tests/support/collectives.h"

GLOO_NAMESPACE_BEGIN
namespace testing_support {

// For GLOO_ALGORITHM: everything that is offered, and one of two allreduces.
inline std::string hierarchicalWith(const std::string& allreduce) {
  std::string text = "allreduce=" + allreduce;
  for (const char* collective :
       {"broadcast", "reduce", "barrier", "allgather", "allgatherv",
        "reduce_scatter", "reduce_scatterv"}) {
    text += MakeString(",", collective, "=hierarchical");
  }
  return text;
}

// Sums that depend on the order of their terms, from every rank: empty, or
// which rank has other bits than rank 0.
inline std::string compareBits(ContextRef context, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; i++) {
    const auto x = static_cast<float>(i * 7919 % 100003 + 1);
    values[i] = std::ldexp(context->rank % 2 == 0 ? x : -x,
                           static_cast<int>((i + 5 * context->rank) % 30) - 15);
  }
  AllreduceOptions opts(context);
  opts.setOutput(values.data(), count);
  opts.setReduceFunction(adder<float>());
  allreduce(opts);
  std::vector<float> all(count * static_cast<size_t>(context->size));
  AllgatherOptions gather(context);
  gather.setInput(values.data(), count);
  gather.setOutput(all.data(), all.size());
  allgather(gather);
  for (int rank = 1; rank < context->size; rank++) {
    // An empty vector has no memory that memcmp could be given.
    if (count > 0 &&
        std::memcmp(all.data(), &all[static_cast<size_t>(rank) * count],
                    count * sizeof(float)) != 0) {
      return MakeString("rank ", rank, " has other bits than rank 0");
    }
  }
  return {};
}

// The transport's context, which gloo::Context keeps to itself.
struct Inside : ::gloo::Context {
  static transport::Context& of(ContextRef context) {
    return *((*context).*(&Inside::transportContext_));
  }
};

inline std::string checkHostMap(ContextRef context,
                                const std::vector<int>& hostOfRank) {
  transport::Context& ranks = Inside::of(context);
  if (internal::profileOf(ranks)->hostOfRank != hostOfRank) {
    return "another map of hosts was agreed on";
  }
  for (int peer = 0; peer < context->size; peer++) {
    const auto self = static_cast<size_t>(context->rank);
    const bool isNear =
        hostOfRank[self] == hostOfRank[static_cast<size_t>(peer)];
    const std::string link =
        dynamic_cast<internal::Channel&>(ranks).linkName(peer);
    if (peer != context->rank && isNear != (link == "shm")) {
      return MakeString("rank ", peer, " is reached over ", link);
    }
  }
  return {};
}

// Hosts are numbered in the order of their lowest ranks. Empty, or what is
// wrong.
inline std::string checkOnHosts(ContextRef context,
                                const std::vector<int>& hostOfRank,
                                const std::vector<size_t>& counts) {
  std::string wrong = checkHostMap(context, hostOfRank);
  unsigned seed = 0;
  for (size_t which = 0; which < kChecks; which++) {
    for (const size_t count : counts) {
      for (const bool inPlace : {false, true}) {
        const int root = static_cast<int>(seed) % context->size;
        const Call call{count, root, inPlace, 0, seed++};
        wrong += checkCollective<float>(which, context, call);
        wrong += checkCollective<Triple>(which, context, call);
      }
    }
    barrier(BarrierOptions(context));
  }
  for (const size_t count : counts) {
    wrong += compareBits(context, count);
  }
  return wrong;
}

}  // namespace testing_support
GLOO_NAMESPACE_END
