// The classes of the older API on memory that all ranks have mapped: what is
// too short for their algorithms' names sends no message.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <vector>

#include "gloo/allgather_ring.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_ring.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/internal/statistics.h"
#include "gloo/reduce_scatter.h"
#include "gloo/transport/shm/device.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;
using Values = std::vector<int>;

constexpr int kRanks = 3;
constexpr int kTurns = 100;

std::shared_ptr<transport::Device> makeDevice() {
  return transport::shm::CreateDevice();
}

// Of `turns` runs on all ranks. A credit may still be on its way from before.
template <typename Run>
void expectNoMessages(const ContextPtr& context, const Run& run) {
  const auto& device = *context->getDevice();
  const auto before = internal::statisticsOf(device).framesSent;
  for (int turn = 0; turn < kTurns; turn++) {
    run(turn);
  }
  EXPECT_LE(internal::statisticsOf(device).framesSent, before + 2 * kRanks);
}

void onAll(const std::function<void(const ContextPtr&)>& body) {
  spawnContexts(Mode::kThreads, makeDevice, kRanks, body);
}

TEST(DirectObjects, AllreduceOfAShortVector) {
  onAll([](const ContextPtr& context) {
    Values one(50);
    Values two(50);
    AllreduceRing<int> object(context, {one.data(), two.data()}, 50);
    expectNoMessages(context, [&](int turn) {
      one.assign(50, turn);
      two.assign(50, context->rank);
      object.run();
      ASSERT_EQ(Values(50, kRanks * turn + 3), one);
      ASSERT_EQ(one, two);
    });
  });
}

TEST(DirectObjects, AllgatherOfShortVectors) {
  onAll([](const ContextPtr& context) {
    Values in(2);
    Values out(2 * kRanks);
    AllgatherRing<int> object(context, {in.data()}, out.data(), 2);
    expectNoMessages(context, [&](int turn) {
      in.assign(2, turn + context->rank);
      object.run();
      ASSERT_EQ(Values({turn, turn, turn + 1, turn + 1, turn + 2, turn + 2}),
                out);
    });
  });
}

TEST(DirectObjects, ReduceScatterOfAShortVector) {
  onAll([](const ContextPtr& context) {
    Values data(9);
    ReduceScatterHalvingDoubling<int> object(context, {data.data()}, 9,
                                             {2, 3, 4});
    expectNoMessages(context, [&](int turn) {
      for (int i = 0; i < 9; i++) {
        data[static_cast<size_t>(i)] = i + turn;
      }
      object.run();
      const int first = context->rank == 0 ? 0 : context->rank == 1 ? 2 : 5;
      for (int i = 0; i < context->rank + 2; i++) {
        ASSERT_EQ(kRanks * (first + i + turn), data[static_cast<size_t>(i)]);
      }
    });
  });
}

// Nor does what is refused change the vectors that it would have reduced.
TEST(DirectObjects, OnAContextThatHasFailed) {
  onAll([](const ContextPtr& context) {
    Values one(50, 1);
    Values two(50, 2);
    AllreduceRing<int> object(context, {one.data(), two.data()}, 50);
    object.run();
    EXPECT_EQ(Values(50, 3 * kRanks), two);
    one.assign(50, 1);
    BarrierOptions nobodyElses(context);
    nobodyElses.setTag(static_cast<uint32_t>(context->rank) + 1);
    nobodyElses.setTimeout(std::chrono::milliseconds(100));
    EXPECT_THROW(barrier(nobodyElses), IoException);
    EXPECT_THROW(object.run(), IoException);
    EXPECT_EQ(Values(50, 1), one);
  });
}

TEST(DirectObjects, AnAllreduceThatNamesAnAlgorithm) {
  onAll([](const ContextPtr& context) {
    Values data(50);
    AllreduceOptions opts(context);
    opts.setOutput(data.data(), data.size());
    opts.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(
            &sum<int>));
    opts.setAlgorithm(AllreduceOptions::RING);
    expectNoMessages(context, [&](int turn) {
      data.assign(50, turn);
      allreduce(opts);
      ASSERT_EQ(Values(50, kRanks * turn), data);
    });
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
