// Every collective with vectors that are given as buffers, one or several, of
// a type of the caller's own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "gloo/allgather.h"
#include "gloo/allgatherv.h"
#include "gloo/allreduce.h"
#include "gloo/alltoall.h"
#include "gloo/alltoallv.h"
#include "gloo/broadcast.h"
#include "gloo/context.h"
#include "gloo/gather.h"
#include "gloo/gatherv.h"
#include "gloo/math.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/reduce_scatterv.h"
#include "gloo/scatter.h"
#include "gloo/transport/unbound_buffer.h"
#include "support/check.h"
#include "support/money.h"

using ContextPtr = std::shared_ptr<gloo::Context>;
using Reduce = void (*)(void*, const void*, const void*, size_t);
using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

inline Buffer over(const ContextPtr& context, std::vector<Money>& values) {
  return context->createUnboundBuffer(values.data(),
                                      values.size() * sizeof(Money));
}

inline std::vector<Buffer> over(const ContextPtr& context,
                                std::vector<std::vector<Money>>& lists) {
  std::vector<Buffer> buffers;
  for (auto& values : lists) {
    buffers.push_back(over(context, values));
  }
  return buffers;
}

// Several buffers in, several out.
inline void checkListsOfBuffers(const ContextPtr& context) {
  const long size = context->size;
  std::vector<std::vector<Money>> in{money(50, context->rank), money(50, 1)};
  std::vector<std::vector<Money>> out{money(50, -1), money(50, -1)};
  gloo::AllreduceOptions options(context);
  options.setInputs<Money>(over(context, in));
  options.setOutputs<Money>(over(context, out));
  options.setReduceFunction(Reduce(&gloo::sum<Money>));
  gloo::allreduce(options);
  CHECK(out[0] == money(50, size * (size + 1) / 2));
  CHECK(out[1] == out[0]);
  CHECK(in[0] == money(50, context->rank) && in[1] == money(50, 1));
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::BCUBE);
  options.setOutputs<Money>(over(context, in));
  options.setInputs<Money>(over(context, out));
  gloo::allreduce(options);
  CHECK(in[0] == money(50, size * size * (size + 1)) && in[1] == in[0]);
}

// `values` in, by a buffer; as many as `out` has, out.
template <typename Options>
void collect(const ContextPtr& context, void (*call)(const Options&),
             std::vector<Money> values, std::vector<Money>& out) {
  Options options(context);
  options.template setInput<Money>(over(context, values));
  options.template setOutput<Money>(over(context, out));
  if constexpr (std::is_same_v<Options, gloo::GatherOptions> ||
                std::is_same_v<Options, gloo::ReduceOptions> ||
                std::is_same_v<Options, gloo::BroadcastOptions>) {
    options.setRoot(0);
  }
  if constexpr (std::is_same_v<Options, gloo::ReduceOptions> ||
                std::is_same_v<Options, gloo::ReduceScatterOptions>) {
    options.setReduceFunction(Reduce(&gloo::sum<Money>));
  }
  options.setTimeout(std::chrono::seconds(20));
  call(options);
}

// One of each rank, r + 1; or the same by rank 0 alone.
inline void checkBuffers(const ContextPtr& context) {
  const int size = context->size;
  const int rank = context->rank;
  const auto root = [&](long cents) { return rank == 0 ? cents : -1; };
  std::vector<Money> one = money(1, -1);
  collect(context, &gloo::broadcast, money(1, rank + 8), one);
  CHECK(one == money(1, 8));
  one = money(1, -1);
  collect(context, &gloo::reduce, money(1, 2), one);
  CHECK(rank != 0 || one == money(1, 2 * size));
  collect(context, &gloo::reduce_scatter, money(size, rank + 1), one);
  CHECK(one == money(1, size * (size + 1) / 2));
  auto all = money(size, -1);
  collect(context, &gloo::gather, money(1, rank + 1), all);
  for (int i = 0; i < size; i++) {
    CHECK(all[i] == Money{root(i + 1)});
  }
  all = money(size, -1);
  collect(context, &gloo::allgather, money(1, rank + 1), all);
  auto turned = money(size, -1);
  collect(context, &gloo::alltoall, all, turned);
  CHECK(turned == money(size, rank + 1));
  std::vector<std::vector<Money>> parts;
  for (int i = 0; i < size; i++) {
    CHECK(all[i] == Money{i + 1});
    parts.push_back(money(1, i + 30));
  }
  gloo::ScatterOptions scatter(context);
  scatter.setRoot(size - 1);
  if (rank == size - 1) {
    scatter.setInputs<Money>(over(context, parts));
  }
  scatter.setOutput<Money>(over(context, one));
  gloo::scatter(scatter);
  CHECK(one == money(1, rank + 30));
}

// Of v-collectives: rank r has r + 1.
inline void checkCounts(const ContextPtr& context) {
  const int size = context->size;
  const int rank = context->rank;
  std::vector<size_t> counts;
  auto expected = money(0, 0);
  for (int i = 0; i < size; i++) {
    counts.push_back(i + 1);
    expected.resize(expected.size() + i + 1, Money{i});
  }
  auto mine = money(rank + 1, rank);
  auto all = money(expected.size(), -1);
  gloo::AllgathervOptions allgather(context);
  allgather.setInput<Money>(over(context, mine));
  allgather.setOutput<Money>(over(context, all), counts);
  gloo::allgatherv(allgather);
  CHECK(all == expected);
  all = money(expected.size(), -1);
  gloo::GathervOptions gather(context);
  gather.setInput<Money>(over(context, mine));
  if (rank == 0) {
    gather.setOutput<Money>(over(context, all), counts);
  }
  gather.setRoot(0);
  gloo::gatherv(gather);
  CHECK(rank != 0 || all == expected);
  gloo::ReduceScattervOptions reduce(context);
  reduce.setInput<Money>(over(context, expected), counts);
  reduce.setOutput<Money>(over(context, mine));
  reduce.setReduceFunction(Reduce(&gloo::sum<Money>));
  gloo::reduce_scatterv(reduce);
  CHECK(mine == money(rank + 1, rank * size));
  auto sent = money((rank + 1) * size, rank);
  gloo::AlltoallvOptions exchange(context);
  exchange.setInput<Money>(over(context, sent),
                           std::vector<int64_t>(size, rank + 1));
  exchange.setOutput<Money>(over(context, all),
                            std::vector<int64_t>(counts.begin(), counts.end()));
  gloo::alltoallv(exchange);
  CHECK(all == expected);
}

inline void checkAverages(const ContextPtr& context) {
  std::vector<gloo::bfloat16> halves(20, gloo::bfloat16(context->rank * 2));
  gloo::AllreduceOptions options(context);
  options.setOutput(halves.data(), halves.size());
  options.setReduceFunction(gloo::average<gloo::bfloat16>);
  gloo::allreduce(options);
  for (const auto half : halves) {
    CHECK(half == gloo::bfloat16(context->size - 1));
  }
}
