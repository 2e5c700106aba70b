// The free functions and classes of the API, over a fake channel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "gloo/allgatherv.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_bcube.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_local.h"
#include "gloo/allreduce_ring.h"
#include "gloo/allreduce_ring_chunked.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/barrier_all_to_one.h"
#include "gloo/broadcast.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/common/logging.h"
#include "gloo/reduce_scatterv.h"
#include "tests/algorithms/worlds.h"

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::ContextPtr;
using testing_support::ContextWorld;

using Pointer = void (*)(void*, const void*, const void*, size_t);

template <typename T>
std::vector<T> ramp(size_t count, int start) {
  std::vector<T> values;
  for (size_t i = 0; i < count; i++) {
    values.push_back(T(static_cast<int>(i % 50) + start));
  }
  return values;
}

template <typename T>
void checkSums(int size, size_t count, int local,
               AllreduceOptions::Algorithm algorithm) {
  ContextWorld world(size);
  world.run([&](const ContextPtr& context) {
    std::vector<std::vector<T>> in(static_cast<size_t>(local),
                                   ramp<T>(count, context->rank));
    std::vector<std::vector<T>> out(2, std::vector<T>(count));
    std::vector<T*> inputs;
    for (auto& v : in) {
      inputs.push_back(v.data());
    }
    AllreduceOptions opts(context);
    opts.setInputs(inputs, count);
    opts.setOutputs(std::vector<T*>{out[0].data(), out[1].data()}, count);
    opts.setReduceFunction(static_cast<Pointer>(&sum<T>));
    opts.setAlgorithm(algorithm);
    opts.setMaxSegmentSize(64);
    allreduce(opts);
    for (size_t i = 0; i < count; i++) {
      const T expected(
          local * (size * static_cast<int>(i % 50) + size * (size - 1) / 2));
      ASSERT_TRUE(out[0][i] == expected && out[1][i] == expected) << i;
      ASSERT_TRUE(in[0][i] == T(static_cast<int>(i % 50) + context->rank));
    }
  });
}

TEST(Allreduce, SumsOfEveryTypeWithSeveralVectors) {
  for (const int size : {1, 2, 3, 5}) {
    for (const auto algorithm :
         {AllreduceOptions::UNSPECIFIED, AllreduceOptions::RING,
          AllreduceOptions::BCUBE}) {
      for (const int local : {1, 2, 3}) {
        checkSums<float>(size, 100, local, algorithm);
        checkSums<float>(size, 5000, local, algorithm);  // by that name
        checkSums<double>(size, 7, local, algorithm);
        checkSums<int8_t>(size, 2, 1, algorithm);
        checkSums<uint64_t>(size, 1, local, algorithm);
        checkSums<bfloat16>(size, 3, 1, algorithm);
        checkSums<float16>(size, 0, local, algorithm);
      }
    }
  }
}

TEST(Allreduce, WithoutInputIsInPlace) {
  ContextWorld world(4);
  world.run([](const ContextPtr& context) {
    std::vector<int> data(1000, context->rank + 1);
    AllreduceOptions opts(context);
    opts.setOutput(data.data(), data.size());
    opts.setReduceFunction(static_cast<Pointer>(&product<int>));
    allreduce(opts);
    EXPECT_EQ(std::vector<int>(1000, 24), data);
  });
}

struct Wide {
  int64_t a;
  int32_t b;
};

TEST(Allreduce, ForeignTypesAndLambdas) {
  ContextWorld world(3);
  world.run([](const ContextPtr& context) {
    std::vector<Wide> data(37, Wide{context->rank, 1});
    AllreduceOptions opts(context);
    opts.setOutput(data.data(), data.size());
    opts.setMaxSegmentSize(100);
    opts.setReduceFunction([](void* c, const void* a, const void* b, size_t n) {
      for (size_t i = 0; i < n; i++) {
        const Wide x = static_cast<const Wide*>(a)[i];
        const Wide y = static_cast<const Wide*>(b)[i];
        static_cast<Wide*>(c)[i] = {std::max(x.a, y.a), x.b + y.b};
      }
    });
    allreduce(opts);
    for (const Wide& w : data) {
      EXPECT_EQ(2, w.a);
      EXPECT_EQ(3, w.b);
    }
  });
}

// Rank 1 has a part of no elements, and a pointer into all that there is.
TEST(Allgatherv, AnEmptyInputOverlapsNothing) {
  ContextWorld world(2);
  world.run([](const ContextPtr& context) {
    std::vector<int> data(6, context->rank);
    std::vector<int> other(6, 7);
    AllgathervOptions opts(context);
    opts.setOutput(data.data(), std::vector<size_t>{6, 0});
    if (context->rank == 0) {
      opts.setInput(other.data(), 6);
    } else {
      opts.setInput(data.data() + 3, 0);
    }
    allgatherv(opts);
    EXPECT_EQ(std::vector<int>(6, 7), data);
  });
}

TEST(ReduceScatterv, AnEmptyOutputOverlapsNothing) {
  ContextWorld world(2);
  world.run([](const ContextPtr& context) {
    std::vector<int> data(6, 1);
    std::vector<int> other(6);
    ReduceScattervOptions opts(context);
    opts.setInput(data.data(), std::vector<size_t>{6, 0});
    if (context->rank == 0) {
      opts.setOutput(other.data(), 6);
    } else {
      opts.setOutput(data.data() + 3, 0);
    }
    opts.setReduceFunction(static_cast<Pointer>(&sum<int>));
    reduce_scatterv(opts);
    EXPECT_EQ(std::vector<int>(6, 1), data);
    EXPECT_EQ(std::vector<int>(6, context->rank == 0 ? 2 : 0), other);
  });
}

// (a, b, n) -> a - b is not commutative: shows which operand is where.
TEST(Allreduce, AllRanksGetTheSameBits) {
  for (const int size : {2, 3, 4, 6, 7}) {
    ContextWorld world(size);
    std::vector<std::vector<float>> results(static_cast<size_t>(size));
    world.run([&](const ContextPtr& context) {
      std::vector<float> data(333);
      for (size_t i = 0; i < data.size(); i++) {
        data[i] = 1.0f / static_cast<float>(3 + i * 7 + context->rank * 31);
      }
      AllreduceOptions opts(context);
      opts.setOutput(data.data(), data.size());
      opts.setReduceFunction(static_cast<Pointer>(&sum<float>));
      allreduce(opts);
      results[static_cast<size_t>(context->rank)] = data;
    });
    for (const auto& result : results) {
      EXPECT_EQ(0, std::memcmp(result.data(), results[0].data(),
                               result.size() * sizeof(float)));
    }
  }
}

TEST(Allreduce, WrongOptionsThrowBeforeAnythingIsSent) {
  ContextWorld world(2);
  const ContextPtr& context = world.context(0);
  std::vector<float> data(10);
  const auto add = static_cast<Pointer>(&sum<float>);
  EXPECT_THROW(AllreduceOptions(nullptr), InvalidOperationException);
  {
    AllreduceOptions opts(context);
    opts.setReduceFunction(add);
    EXPECT_THROW(allreduce(opts), InvalidOperationException);  // no output
    opts.setOutput(data.data(), 10);
    opts.setInput(data.data(), 9);
    EXPECT_THROW(allreduce(opts), InvalidOperationException);  // lengths
    opts.setInput(data.data() + 1, 9);
    opts.setOutput(data.data(), 9);
    EXPECT_THROW(allreduce(opts), InvalidOperationException);  // overlap
    opts.setInput(static_cast<float*>(nullptr), 9);
    EXPECT_THROW(allreduce(opts), InvalidOperationException);  // null
    float** const none = nullptr;
    EXPECT_THROW(opts.setInputs(none, 2, 9), InvalidOperationException);
    EXPECT_THROW(opts.setOutputs(none, 2, 9), InvalidOperationException);
    double other[9];
    EXPECT_THROW(opts.setInput(other, 9), InvalidOperationException);
    EXPECT_THROW(opts.setMaxSegmentSize(0), InvalidOperationException);
  }
  AllreduceOptions opts(context);
  opts.setOutput(data.data(), 10);
  EXPECT_THROW(allreduce(opts), InvalidOperationException);  // no function
  opts.setReduceFunction(static_cast<Pointer>(&sum<double>));
  EXPECT_THROW(allreduce(opts), InvalidOperationException);  // other type
  EXPECT_EQ(0u, world.world().posted());
}

TEST(Broadcast, FromInputOrOutputOrBoth) {
  for (const bool hasInput : {false, true}) {
    for (const bool hasOutput : {false, true}) {
      for (int root = 0; (hasInput || hasOutput) && root < 3; root++) {
        ContextWorld world(3);
        world.run([&](const ContextPtr& context) {
          const bool isRoot = context->rank == root;
          std::vector<int> in(50, 7);
          std::vector<int> out(50, isRoot && !hasInput ? 7 : 0);
          BroadcastOptions opts(context);
          opts.setRoot(root);
          if (isRoot && hasInput) {
            opts.setInput(in.data(), in.size());
          }
          if (!isRoot || hasOutput) {
            opts.setOutput(out.data(), out.size());
          }
          broadcast(opts);
          EXPECT_EQ(isRoot && !hasOutput ? 0 : 7, out[49]);
        });
      }
    }
  }
}

TEST(Broadcast, WrongOptionsThrowBeforeAnythingIsSent) {
  ContextWorld world(2);
  std::vector<int> data(4);
  BroadcastOptions opts(world.context(0));
  opts.setOutput(data.data(), data.size());
  EXPECT_THROW(broadcast(opts), InvalidOperationException);  // no root
  opts.setRoot(2);
  EXPECT_THROW(broadcast(opts), InvalidOperationException);
  BroadcastOptions empty(world.context(0));
  empty.setRoot(0);
  EXPECT_THROW(broadcast(empty), InvalidOperationException);
  EXPECT_EQ(0u, world.world().posted());
}

TEST(Barrier, ATimeoutNamesTheMissingRank) {
  ContextWorld world(2);
  BarrierOptions opts(world.context(0));
  opts.setTag(5);
  opts.setTimeout(std::chrono::milliseconds(20));
  try {
    barrier(opts);
    FAIL() << "the other rank never came";
  } catch (const TimeoutException& e) {
    const std::string text = e.what();
    EXPECT_NE(std::string::npos, text.find("barrier tag 5")) << text;
    EXPECT_NE(std::string::npos, text.find("Timed out")) << text;
    EXPECT_NE(std::string::npos, text.find("rank 1")) << text;
  }
}

template <template <typename> class Class>
void checkClass(int size, size_t count) {
  ContextWorld world(size, {}, 3);
  world.run([&](const ContextPtr& context) {
    std::vector<float> a(count);
    std::vector<float> b(count);
    Class<float> algorithm(context, {a.data(), b.data()},
                           static_cast<int>(count));
    for (int turn = 1; turn < 4; turn++) {
      a.assign(count, static_cast<float>(context->rank));
      b.assign(count, static_cast<float>(turn));
      algorithm.run();
      const std::vector<float> expected(
          count, static_cast<float>(size * (size - 1) / 2 + size * turn));
      EXPECT_EQ(expected, a);
      EXPECT_EQ(expected, b);
    }
  });
}

TEST(Classes, Allreduce) {
  for (const int size : {1, 2, 3, 6}) {
    checkClass<AllreduceRing>(size, 100);
    checkClass<AllreduceRingChunked>(size, 1);
    checkClass<AllreduceHalvingDoubling>(size, 1000);
    checkClass<AllreduceBcube>(size, 100);
    // By the algorithms that they are named after.
    checkClass<AllreduceRing>(size, 20001);
    checkClass<AllreduceHalvingDoubling>(size, 20001);
    checkClass<AllreduceBcube>(size, 20001);
  }
}

// A send and a receive for each rank, though the classes' algorithms take two.
TEST(Classes, AllreduceOfAShortVectorIsOneExchange) {
  ContextWorld world(2);
  world.run([](const ContextPtr& context) {
    std::vector<int> data(2, 1);
    AllreduceHalvingDoubling<int>(context, {data.data()}, 2).run();
    AllreduceRing<int>(context, {data.data()}, 2).run();
    AllreduceBcube<int>(context, {data.data()}, 2).run();
    EXPECT_EQ(std::vector<int>(2, 8), data);
  });
  EXPECT_EQ(3u * 4u, world.world().posted());
}

// Nor is it for the options' sake, but a long one is.
TEST(Allreduce, AnAlgorithmIsForVectorsThatAreWorthDividing) {
  const auto postedBy = [](AllreduceOptions::Algorithm algorithm,
                           size_t count) {
    ContextWorld world(2);
    world.run([&](const ContextPtr& context) {
      std::vector<int> data(count, 1);
      AllreduceOptions opts(context);
      opts.setOutput(data.data(), count);
      opts.setReduceFunction(static_cast<Pointer>(&sum<int>));
      opts.setAlgorithm(algorithm);
      allreduce(opts);
      EXPECT_EQ(std::vector<int>(count, 2), data);
    });
    return world.world().posted();
  };
  for (const auto algorithm :
       {AllreduceOptions::RING, AllreduceOptions::BCUBE}) {
    EXPECT_EQ(4u, postedBy(algorithm, 4096));
    EXPECT_EQ(8u, postedBy(algorithm, 4097));
  }
}

TEST(Classes, AllreduceWithTheCallersOwnReduction) {
  ContextWorld world(5);
  world.run([](const ContextPtr& context) {
    // Not commutative: the leftmost contribution wins.
    const ReductionFunction<int> first(CUSTOM, [](int*, const int*, size_t) {});
    std::vector<int> data(64, context->rank + 100);
    AllreduceRing<int> ring(context, {data.data()}, 64, &first);
    ring.run();
    EXPECT_EQ(std::vector<int>(64, 100), data);
    data.assign(64, context->rank + 100);
    AllreduceHalvingDoubling<int> halving(context, {data.data()}, 64, &first);
    halving.run();
    EXPECT_EQ(std::vector<int>(64, 100), data);
  });
}

TEST(Classes, AllreduceLocalSendsNothing) {
  ContextWorld world(2);
  std::vector<int> a(10, 1);
  std::vector<int> b(10, 5);
  AllreduceLocal<int> local(world.context(0), {a.data(), b.data()}, 10,
                            ReductionFunction<int>::max);
  local.run();
  EXPECT_EQ(std::vector<int>(10, 5), a);
  EXPECT_EQ(0u, world.world().posted());
}

TEST(Classes, BroadcastFromOneOfSeveralVectors) {
  ContextWorld world(3);
  world.run([](const ContextPtr& context) {
    std::vector<int> a(20, context->rank);
    std::vector<int> b(20, context->rank + 10);
    BroadcastOneToAll<int> all(context, {a.data(), b.data()}, 20, 1, 1);
    all.run();
    EXPECT_EQ(std::vector<int>(20, 11), a);
    EXPECT_EQ(std::vector<int>(20, 11), b);
  });
}

TEST(Classes, Barriers) {
  ContextWorld world(4);
  std::atomic<int> entered{0};
  world.run([&](const ContextPtr& context) {
    BarrierAllToAll all(context);
    BarrierAllToOne one(context, 2);
    entered++;
    all.run();
    EXPECT_EQ(4, entered.load());
    one.run();
    all.run();
  });
}

}  // namespace
GLOO_NAMESPACE_END
