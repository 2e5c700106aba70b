// Averages, and the classes of the older API.
#include <gtest/gtest.h>

#include <complex>
#include <type_traits>

#include "gloo/allgather_ring.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_bcube.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_local.h"
#include "gloo/allreduce_ring.h"
#include "gloo/allreduce_ring_chunked.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/barrier_all_to_one.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/pairwise_exchange.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/reduce_scatterv.h"
#include "tests/algorithms/worlds.h"
#include "tests/support/collectives.h"

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::ContextPtr;
using testing_support::ContextWorld;

template <typename T>
void checkAverages(int size) {
  ContextWorld world(size);
  world.run([size](const ContextPtr& context) {
    const size_t ranks = static_cast<size_t>(size);
    const T mine(context->rank);
    const T expected = T(static_cast<float>(size - 1) / 2);
    {
      std::vector<T> data(33, mine);
      AllreduceOptions opts(context);
      opts.setOutput(data.data(), data.size());
      opts.setReduceFunction(average<T>);
      allreduce(opts);
      EXPECT_TRUE(data == std::vector<T>(33, expected));
    }
    {
      std::vector<T> data(33, mine);
      ReduceOptions opts(context);
      opts.setOutput(data.data(), data.size());
      opts.setReduceFunction(average<T>);
      opts.setRoot(size - 1);
      reduce(opts);
      EXPECT_TRUE(data == std::vector<T>(
                              33, context->rank == size - 1 ? expected : mine));
    }
    std::vector<T> in(7 * ranks, mine);
    std::vector<T> out(7);
    {
      ReduceScatterOptions opts(context);
      opts.setInput(in.data(), in.size());
      opts.setOutput(out.data(), out.size());
      opts.setReduceFunction(average<T>);
      reduce_scatter(opts);
      EXPECT_TRUE(out == std::vector<T>(7, expected));
    }
    ReduceScattervOptions opts(context);
    opts.setOutput(in.data(), std::vector<size_t>(ranks, 7));
    opts.setReduceFunction(average<T>);
    reduce_scatterv(opts);
    in.resize(7);
    EXPECT_TRUE(in == std::vector<T>(7, expected));
  });
}

TEST(Average, IsTheSumDividedByTheRanks) {
  for (const int size : {1, 3, 4}) {
    checkAverages<float>(size);
    checkAverages<double>(size);
    checkAverages<float16>(size);
    checkAverages<bfloat16>(size);
    checkAverages<std::complex<float>>(size);
    checkAverages<std::complex<double>>(size);
  }
}

TEST(Average, CountsEveryVector) {
  ContextWorld world(2);
  world.run([](const ContextPtr& context) {
    std::vector<float> a(5, 1.0f);
    std::vector<float> b(5, 2.0f);
    AllreduceOptions opts(context);
    opts.setOutputs(std::vector<float*>{a.data(), b.data()}, 5);
    opts.setReduceFunction(average<float>);
    allreduce(opts);
    EXPECT_EQ(std::vector<float>(5, 1.5f), a);
    EXPECT_EQ(a, b);
  });
}

TEST(Classes, AllgatherRing) {
  for (const int size : {1, 2, 5}) {
    ContextWorld world(size);
    world.run([size](const ContextPtr& context) {
      std::vector<int> a(10);
      std::vector<int> b(10);
      std::vector<int> out(static_cast<size_t>(size) * 20);
      AllgatherRing<int> ring(context, {a.data(), b.data()}, out.data(), 10);
      for (int turn = 0; turn < 3; turn++) {
        a.assign(10, 100 * turn + context->rank);
        b.assign(10, 100 * turn + context->rank + 50);
        ring.run();
        for (size_t i = 0; i < out.size(); i++) {
          const int rank = static_cast<int>(i / 20);
          ASSERT_EQ(100 * turn + rank + (i % 20 < 10 ? 0 : 50), out[i]);
        }
      }
    });
  }
}

TEST(Classes, ReduceScatterHalvingDoubling) {
  for (const int size : {1, 2, 3, 4, 7}) {
    ContextWorld world(size);
    world.run([size](const ContextPtr& context) {
      // Rank 1 gets nothing.
      std::vector<int> counts;
      size_t total = 0;
      size_t begin = 0;
      for (int rank = 0; rank < size; rank++) {
        begin = rank == context->rank ? total : begin;
        counts.push_back(rank == 1 ? 0 : 5 + rank);
        total += static_cast<size_t>(counts.back());
      }
      std::vector<float> a(total);
      std::vector<float> b(total);
      ReduceScatterHalvingDoubling<float> object(
          context, {a.data(), b.data()}, static_cast<int>(total), counts);
      for (int turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < total; i++) {
          a[i] = static_cast<float>(i);
          b[i] = static_cast<float>(turn);
        }
        object.run();
        for (int i = 0; i < counts[static_cast<size_t>(context->rank)]; i++) {
          const auto at = static_cast<size_t>(i);
          const auto value =
              static_cast<float>(size * (static_cast<int>(begin) + i + turn));
          ASSERT_EQ(value, a[at]);
          ASSERT_EQ(value, b[at]);
        }
      }
    });
  }
}

// Nor need there be any memory then.
TEST(Classes, OfNoElements) {
  for (const int size : {1, 2, 3}) {
    ContextWorld world(size, {}, 3);
    world.run([size](const ContextPtr& context) {
      const std::vector<int*> none{nullptr, nullptr};
      AllreduceRing<int>(context, none, 0).run();
      AllreduceRingChunked<int>(context, none, 0).run();
      AllreduceHalvingDoubling<int>(context, none, 0).run();
      AllreduceBcube<int>(context, none, 0).run();
      AllreduceLocal<int>(context, none, 0).run();
      ReduceScatterHalvingDoubling<int>(
          context, none, 0, std::vector<int>(static_cast<size_t>(size)))
          .run();
      AllgatherRing<int>(context, {nullptr, nullptr}, nullptr, 0).run();
      BroadcastOneToAll<int>(context, none, 0, size - 1, 1).run();
    });
    EXPECT_EQ(0u, world.world().pending());
  }
}

// Of T only what the reduction needs is asked for.
template <typename T>
void checkClasses(const T& mine, const T& expected,
                  const ReductionFunction<T>* reduction) {
  ContextWorld world(2);
  world.run([&](const ContextPtr& context) {
    std::vector<T> data;
    const auto check = [&](const auto& make, size_t results) {
      data.assign(6, mine);
      const auto object = make(std::vector<T*>{data.data()});
      object->run();
      for (size_t i = 0; i < results; i++) {
        EXPECT_TRUE(data[i] == expected) << i;
      }
    };
    const auto allreduceBy = [&](auto* none) {
      using Class = std::remove_pointer_t<decltype(none)>;
      return [&](const std::vector<T*>& ptrs) {
        return std::make_unique<Class>(context, ptrs, 6, reduction);
      };
    };
    check(allreduceBy(static_cast<AllreduceRing<T>*>(nullptr)), 6);
    check(allreduceBy(static_cast<AllreduceRingChunked<T>*>(nullptr)), 6);
    check(allreduceBy(static_cast<AllreduceHalvingDoubling<T>*>(nullptr)), 6);
    check(allreduceBy(static_cast<AllreduceBcube<T>*>(nullptr)), 6);
    check(
        [&](const std::vector<T*>& ptrs) {
          return std::make_unique<ReduceScatterHalvingDoubling<T>>(
              context, ptrs, 6, std::vector<int>{3, 3}, reduction);
        },
        3);
    std::vector<T> other(6, mine);
    check(
        [&](const std::vector<T*>& ptrs) {
          return std::make_unique<AllreduceLocal<T>>(
              context, std::vector<T*>{ptrs[0], other.data()}, 6, reduction);
        },
        6);
  });
}

template <typename Object, typename... Arguments>
void expectRefusal(const Arguments&... arguments) {
  EXPECT_THROW(Object(nullptr, arguments...), InvalidOperationException);
}

TEST(Classes, RefuseToBeWithoutAContext) {
  std::vector<float> vector(8);
  const std::vector<float*> vectors{vector.data()};
  const std::vector<const float*> inputs{vector.data()};
  expectRefusal<AllreduceRing<float>>(vectors, 8);
  expectRefusal<AllreduceRingChunked<float>>(vectors, 8);
  expectRefusal<AllreduceHalvingDoubling<float>>(vectors, 8);
  expectRefusal<AllreduceBcube<float>>(vectors, 8);
  expectRefusal<AllreduceLocal<float>>(vectors, 8);
  expectRefusal<ReduceScatterHalvingDoubling<float>>(vectors, 8,
                                                     std::vector<int>{8});
  expectRefusal<AllgatherRing<float>>(inputs, vector.data(), 8);
  expectRefusal<BroadcastOneToAll<float>>(vectors, 8);
  expectRefusal<BarrierAllToAll>();
  expectRefusal<BarrierAllToOne>();
  expectRefusal<PairwiseExchange>(8, 1);
}

TEST(Classes, TakeComplexNumbers) {
  using Single = std::complex<float>;
  using Double = std::complex<double>;
  checkClasses<Single>({1, 2}, {2, 4}, ReductionFunction<Single>::sum);
  checkClasses<Single>({1, 2}, {-3, 4}, ReductionFunction<Single>::product);
  checkClasses<Double>({1, 2}, {2, 4}, ReductionFunction<Double>::sum);
  checkClasses<Double>({1, 2}, {-3, 4}, ReductionFunction<Double>::product);
}

// Neither a product nor an order.
struct Money {
  int64_t cents;
  Money operator+(const Money& other) const { return {cents + other.cents}; }
  Money& operator+=(const Money& other) {
    cents += other.cents;
    return *this;
  }
  bool operator==(const Money& other) const = default;
};

TEST(Classes, TakeTypesThatCanOnlyBeAdded) {
  checkClasses<Money>({21}, {42}, ReductionFunction<Money>::sum);
}

TEST(Classes, PairwiseExchangeSendsToItsPartners) {
  for (const int destinations : {1, 2, 3}) {
    ContextWorld world(8);
    world.run([&](const ContextPtr& context) {
      PairwiseExchange exchange(context, 100, destinations);
      exchange.run();
      exchange.run();
    });
    // A send and a receive with each, twice.
    EXPECT_EQ(static_cast<size_t>(8 * 2 * 2 * destinations),
              world.world().posted());
  }
}

// Of four ranks, two rounds of one exchange, or one of three, and back.
TEST(Objects, BcubeHasTheBaseThatTheContextHadWhenTheyWereMade) {
  ContextWorld world(4);
  for (const int base : {2, 4, 2}) {
    const size_t before = world.world().posted();
    world.run([base](const ContextPtr& context) {
      std::vector<int> data(5000, 1);
      context->base = base;
      AllreduceBcube<int>(context, {data.data()}, 5000).run();
      AllreduceOptions opts(context);
      opts.setOutput(data.data(), data.size());
      void (*add)(void*, const void*, const void*, size_t) = &sum<int>;
      opts.setReduceFunction(add);
      opts.setAlgorithm(AllreduceOptions::BCUBE);
      allreduce(opts);
      EXPECT_EQ(std::vector<int>(5000, 16), data);
    });
    const size_t ofOne = base == 2 ? 4 * 8 : 4 * 12;
    EXPECT_EQ(2 * ofOne, world.world().posted() - before) << base;
  }
}

// Also of options that are used again: no setter tells of the base.
TEST(Objects, ACallHasTheBaseThatTheContextHas) {
  ContextWorld world(4);
  std::vector<std::unique_ptr<AllreduceOptions>> options(4);
  std::vector<std::vector<int>> data(4, std::vector<int>(5000, 1));
  world.run([&](const ContextPtr& context) {
    const auto rank = static_cast<size_t>(context->rank);
    auto opts = std::make_unique<AllreduceOptions>(context);
    opts->setOutput(data[rank].data(), data[rank].size());
    void (*add)(void*, const void*, const void*, size_t) = &sum<int>;
    opts->setReduceFunction(add);
    opts->setAlgorithm(AllreduceOptions::BCUBE);
    options[rank] = std::move(opts);
  });
  for (const int base : {2, 2, 2, 4, 4, 4, 2}) {
    const size_t before = world.world().posted();
    world.run([&](const ContextPtr& context) {
      context->base = base;
      allreduce(*options[static_cast<size_t>(context->rank)]);
    });
    EXPECT_EQ(base == 2 ? 4u * 8 : 4u * 12, world.world().posted() - before);
  }
}

}  // namespace
GLOO_NAMESPACE_END
