// Several vectors of one rank are its contribution. That is made within the
// run: what is refused has changed nothing, and what fails fails for all.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/state.h"
#include "gloo/allgather_ring.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_ring.h"
#include "gloo/alltoallv.h"
#include "gloo/internal/cause.h"
#include "gloo/reduce_scatter.h"
#include "gloo/scatter.h"
#include "tests/algorithms/ranks.h"
#include "tests/algorithms/worlds.h"

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::ContextPtr;
using testing_support::ContextWorld;

constexpr size_t kCount = 6;
void (*const kSum)(void*, const void*, const void*, size_t) = &sum<int>;

// Two vectors in place, whose first takes the sum.
struct InPlace {
  explicit InPlace(const ContextPtr& context) : options(context) {
    options.setOutputs(std::vector<int*>{one.data(), two.data()}, kCount);
    options.setReduceFunction(kSum);
  }
  void expectUnchanged() const {
    EXPECT_EQ(std::vector<int>(kCount, 1), one);
    EXPECT_EQ(std::vector<int>(kCount, 2), two);
  }

  std::vector<int> one = std::vector<int>(kCount, 1);
  std::vector<int> two = std::vector<int>(kCount, 2);
  AllreduceOptions options;
};

void failContext(testing_support::FakeWorld& world) {
  auto cause = std::make_shared<internal::Cause>();
  cause->foundBy = cause->culprit = 0;
  cause->text = "no more";
  world.channel(0).fail(cause);
}

TEST(LocalVectors, StayAsTheyAreWhereTheTagIsInUse) {
  ContextWorld world(2);
  const ContextPtr& context = world.context(0);
  InPlace vectors(context);
  vectors.options.setTag(3);
  const auto lease = algorithms::State::of(*context).checkOut(
      {}, Slot::build(kBarrierSlotPrefix, 3));
  EXPECT_THROW(allreduce(vectors.options), InvalidOperationException);
  vectors.expectUnchanged();
}

TEST(LocalVectors, StayAsTheyAreWhereTheContextHasFailed) {
  for (const int size : {1, 2}) {
    ContextWorld world(size);
    const ContextPtr& context = world.context(0);
    InPlace vectors(context);
    AllreduceRing<int> ring(context, {vectors.one.data(), vectors.two.data()},
                            kCount);
    std::vector<int> counts(static_cast<size_t>(size));
    counts[0] = kCount;
    ReduceScatterHalvingDoubling<int> scattered(
        context, {vectors.one.data(), vectors.two.data()}, kCount, counts);
    const std::vector<int> before(kCount * static_cast<size_t>(size), 7);
    std::vector<int> all = before;
    AllgatherRing<int> gathered(context, {vectors.one.data()}, all.data(),
                                kCount);
    failContext(world.world());
    EXPECT_THROW(gathered.run(), IoException);
    EXPECT_EQ(before, all);
    EXPECT_THROW(allreduce(vectors.options), IoException);
    vectors.expectUnchanged();
    EXPECT_THROW(ring.run(), IoException);
    vectors.expectUnchanged();
    EXPECT_THROW(scattered.run(), IoException);
    vectors.expectUnchanged();
  }
}

// ---- What is only copied, too.

// What a call would copy from, and to.
struct Copied {
  // The call throws, and the output stays.
  template <typename World, typename Call>
  void expectLeft(World& world, const Call& call) {
    failContext(world);
    EXPECT_THROW(call(), IoException);
    EXPECT_EQ(std::vector<int>(kCount, -1), output);
  }

  std::vector<int> input = std::vector<int>(4 * kCount, 1);
  std::vector<int> output = std::vector<int>(kCount, -1);
};

TEST(LocalVectors, OneRanksOutputStaysWhereTheContextHasFailed) {
  ContextWorld world(1);
  Copied vectors;
  AllreduceOptions options(world.context(0));
  options.setInput(vectors.input.data(), kCount);
  options.setOutput(vectors.output.data(), kCount);
  options.setReduceFunction(kSum);
  vectors.expectLeft(world.world(), [&] { allreduce(options); });
}

TEST(LocalVectors, ARanksOwnPartStaysWhereTheContextHasFailed) {
  ContextWorld world(2);
  Copied vectors;
  AlltoallvOptions options(world.context(0));
  options.setInput(vectors.input.data(), std::vector<int64_t>{kCount, 0});
  options.setOutput(vectors.output.data(), std::vector<int64_t>{kCount, 0});
  vectors.expectLeft(world.world(), [&] { alltoallv(options); });
}

// The root copies all parts before it sends any.
TEST(LocalVectors, ARootsOutputStaysWhereTheContextHasFailed) {
  algorithms::Ranks ranks(4);
  Copied vectors;
  algorithms::Request request;
  request.collective = algorithms::Collective::kScatter;
  request.type = internal::ElementType::kInt32;
  request.elementSize = sizeof(int);
  request.counts.count = kCount;
  request.forced = "binomial";
  algorithms::Arguments arguments;
  arguments.input = vectors.input.data();
  arguments.output = vectors.output.data();
  arguments.prefix = kScatterSlotPrefix;
  arguments.timeout = std::chrono::seconds(10);
  vectors.expectLeft(ranks.world(),
                     [&] { ranks.state(0).run(request, arguments); });
}

// Also where there is nobody to exchange anything with.
TEST(LocalVectors, TheirTimeOutIsOne) {
  ContextWorld world(1);
  const ContextPtr& context = world.context(0);
  InPlace vectors(context);
  vectors.options.setTimeout(std::chrono::milliseconds(5));
  vectors.options.setReduceFunction(
      [](void*, const void*, const void*, size_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      });
  try {
    allreduce(vectors.options);
    ADD_FAILURE() << "no timeout";
  } catch (const TimeoutException& e) {
    EXPECT_NE(std::string(e.what()).find("allreduce tag 0"), std::string::npos)
        << e.what();
  }
  EXPECT_THROW(allreduce(vectors.options), TimeoutException);
}

TEST(LocalVectors, AFunctionThatThrowsFailsTheContextOfOneRankToo) {
  ContextWorld world(1);
  InPlace vectors(world.context(0));
  vectors.options.setReduceFunction(
      [](void*, const void*, const void*, size_t) {
        throw std::runtime_error("no sum of these");
      });
  EXPECT_THROW(allreduce(vectors.options), std::runtime_error);
  EXPECT_THROW(allreduce(vectors.options), IoException);
}

// The others do not wait for a rank that will not come.
TEST(LocalVectors, AFunctionThatThrowsFailsTheContext) {
  ContextWorld world(2);
  const auto errors = world.outcomes([](const ContextPtr& context) {
    InPlace vectors(context);
    if (context->rank == 0) {
      vectors.options.setReduceFunction(
          [](void*, const void*, const void*, size_t) {
            throw std::runtime_error("no sum of these");
          });
    } else {
      vectors.options.setOutput(vectors.one.data(), kCount);
      vectors.options.setReduceFunction(
          [](void*, const void*, const void*, size_t) {});
    }
    allreduce(vectors.options);
  });
  ASSERT_NE(nullptr, errors[0]);
  ASSERT_NE(nullptr, errors[1]);
  EXPECT_THROW(std::rethrow_exception(errors[0]), std::runtime_error);
  try {
    std::rethrow_exception(errors[1]);
  } catch (const IoException& e) {
    EXPECT_NE(std::string::npos, std::string(e.what()).find("no sum of these"))
        << e.what();
  }
}

}  // namespace
GLOO_NAMESPACE_END
