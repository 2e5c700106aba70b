// What a rank's part in an operation does not use may be anything: as in MPI,
// callers pass the same arguments on all ranks. What is used is checked.
#include <gtest/gtest.h>

#include <vector>

#include "gloo/broadcast.h"
#include "gloo/gather.h"
#include "gloo/gatherv.h"
#include "gloo/reduce.h"
#include "gloo/scatter.h"
#include "tests/algorithms/worlds.h"

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::ContextPtr;
using testing_support::ContextWorld;

constexpr int kRoot = 1;
int* const kNone = nullptr;

void onThreeRanks(const std::function<void(const ContextPtr&, bool)>& body) {
  ContextWorld world(3);
  world.run([&](const ContextPtr& context) {
    body(context, context->rank == kRoot);
  });
}

template <typename Options, typename Call>
void expectRefused(const Call& call, const Options& options) {
  EXPECT_THROW(call(options), InvalidOperationException);
}

TEST(UnusedVectors, OfBroadcast) {
  onThreeRanks([](const ContextPtr& context, bool isRoot) {
    std::vector<int> data(5, context->rank);
    BroadcastOptions opts(context);
    opts.setRoot(kRoot);
    opts.setInput(isRoot ? data.data() : kNone, data.size());
    opts.setOutput(data.data(), data.size());
    broadcast(opts);
    EXPECT_EQ(std::vector<int>(5, kRoot), data);
  });
}

TEST(UnusedVectors, OfReduce) {
  onThreeRanks([](const ContextPtr& context, bool isRoot) {
    std::vector<int> in(5, context->rank);
    std::vector<int> out(5);
    ReduceOptions opts(context);
    opts.setRoot(kRoot);
    opts.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(
            &sum<int>));
    opts.setInput(in.data(), in.size());
    opts.setOutput(isRoot ? out.data() : kNone, out.size());
    reduce(opts);
    EXPECT_EQ(std::vector<int>(5, isRoot ? 3 : 0), out);
  });
}

TEST(UnusedVectors, OfGather) {
  onThreeRanks([](const ContextPtr& context, bool isRoot) {
    std::vector<int> in(2, context->rank);
    std::vector<int> out(6);
    GatherOptions opts(context);
    opts.setRoot(kRoot);
    opts.setInput(in.data(), in.size());
    opts.setOutput(isRoot ? out.data() : kNone, out.size());
    gather(opts);
    EXPECT_EQ(
        isRoot ? std::vector<int>({0, 0, 1, 1, 2, 2}) : std::vector<int>(6),
        out);
  });
}

TEST(UnusedVectors, OfGatherv) {
  onThreeRanks([](const ContextPtr& context, bool isRoot) {
    const std::vector<size_t> counts{1, 2, 3};
    std::vector<int> in(counts[static_cast<size_t>(context->rank)],
                        context->rank);
    std::vector<int> out(6);
    GathervOptions opts(context);
    opts.setRoot(kRoot);
    opts.setInput(in.data(), in.size());
    opts.setOutput(isRoot ? out.data() : kNone, counts);
    gatherv(opts);
    EXPECT_EQ(
        isRoot ? std::vector<int>({0, 1, 1, 2, 2, 2}) : std::vector<int>(6),
        out);
  });
}

TEST(UnusedVectors, OfScatter) {
  onThreeRanks([](const ContextPtr& context, bool isRoot) {
    std::vector<int> in{10, 11, 12};
    std::vector<int> out(1);
    std::vector<int*> inputs(3, kNone);
    for (size_t i = 0; i < 3 && isRoot; i++) {
      inputs[i] = &in[i];
    }
    ScatterOptions opts(context);
    opts.setRoot(kRoot);
    opts.setInputs(inputs, 1);
    opts.setOutput(out.data(), out.size());
    scatter(opts);
    EXPECT_EQ(10 + context->rank, out[0]);
  });
}

// The root's part stays where it is, which may be where the others' are.
TEST(UnusedVectors, TheOutputOfScattersRoot) {
  onThreeRanks([](const ContextPtr& context, bool isRoot) {
    std::vector<int> data{isRoot ? 10 : 0, isRoot ? 11 : 0};
    ScatterOptions opts(context);
    opts.setRoot(kRoot);
    if (isRoot) {
      opts.setInputs(std::vector<int*>{data.data(), data.data(), &data[1]}, 1);
    } else {
      opts.setOutput(data.data(), 1);
    }
    scatter(opts);
    EXPECT_EQ(context->rank == 2 ? 11 : 10, data[0]);
  });
}

TEST(UnusedVectors, WhatIsUsedIsChecked) {
  ContextWorld world(2);
  const ContextPtr& other = world.context(0);
  BroadcastOptions toBroadcast(other);
  toBroadcast.setRoot(kRoot);
  toBroadcast.setOutput(kNone, 5);
  expectRefused(&broadcast, toBroadcast);
  ReduceOptions toReduce(other);
  toReduce.setRoot(kRoot);
  toReduce.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, size_t)>(
          &sum<int>));
  toReduce.setOutput(kNone, 5);  // without an input it is the input
  expectRefused(&reduce, toReduce);
  toReduce.setInput(kNone, 5);
  expectRefused(&reduce, toReduce);
  GatherOptions toGather(other);
  toGather.setRoot(kRoot);
  toGather.setInput(kNone, 5);
  expectRefused(&gather, toGather);
  ScatterOptions toScatter(other);
  toScatter.setRoot(kRoot);
  toScatter.setOutput(kNone, 5);
  expectRefused(&scatter, toScatter);
  EXPECT_EQ(0u, world.world().posted());
}

}  // namespace
GLOO_NAMESPACE_END
