// Steady state allocates nothing, and a failure needs no memory.
#include <gtest/gtest.h>

#include <new>
#include <typeinfo>

#include "gloo/allgather_ring.h"
#include "gloo/allgatherv.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_bcube.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_local.h"
#include "gloo/allreduce_ring.h"
#include "gloo/allreduce_ring_chunked.h"
#include "gloo/alltoallv.h"
#include "gloo/barrier.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/barrier_all_to_one.h"
#include "gloo/broadcast.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/common/error.h"
#include "gloo/gatherv.h"
#include "gloo/pairwise_exchange.h"
#include "gloo/reduce.h"
#include "gloo/reduce_scatter.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/hash_store.h"
#include "gloo/scatter.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#include "tests/algorithms/worlds.h"
#include "tests/support/own_new.h"

namespace {
// Of this thread, since it was last set to 0.
thread_local size_t allocations = 0;
// Of this thread, which gets no memory.
thread_local bool exhausted = false;
// So many more of this thread succeed, the next one does not.
thread_local size_t succeeding = SIZE_MAX;

}  // namespace

bool mayAllocate() {
  allocations++;
  const bool fails = succeeding != SIZE_MAX && succeeding-- == 0;
  return !exhausted && !fails;
}

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::ContextPtr;
using testing_support::ContextWorld;

// What ten calls allocate after three have warmed up.
size_t allocationsOf(const std::function<void()>& call) {
  for (int i = 0; i < 3; i++) {
    call();
  }
  allocations = 0;
  for (int i = 0; i < 10; i++) {
    call();
  }
  return allocations;
}

// In order, so that the fake channel's own lists have stopped growing.
const testing_support::FakeOptions kOrdered{true, 1, false, 0};
void (*const kAdd)(void*, const void*, const void*, size_t) = &sum<float>;

TEST(Allocation, FreeFunctionsAllocateNothing) {
  for (const size_t count : {1, 1000, 100000}) {
    ContextWorld world(3, kOrdered);
    world.run([&](const ContextPtr& context) {
      std::vector<float> data(count);
      AllreduceOptions reduceOptions(context);
      reduceOptions.setOutput(data.data(), data.size());
      reduceOptions.setReduceFunction(kAdd);
      BroadcastOptions sendOptions(context);
      sendOptions.setOutput(data.data(), data.size());
      sendOptions.setRoot(1);
      const BarrierOptions waitOptions(context);
      EXPECT_EQ(0u, allocationsOf([&] { allreduce(reduceOptions); }));
      EXPECT_EQ(0u, allocationsOf([&] { broadcast(sendOptions); }));
      EXPECT_EQ(0u, allocationsOf([&] { barrier(waitOptions); }));
    });
  }
}

void reduceTwoShapes(const ContextPtr& context, std::vector<float>& data) {
  for (const size_t count : {size_t{10}, data.size()}) {
    AllreduceOptions opts(context);
    opts.setOutput(data.data(), count);
    opts.setReduceFunction(kAdd);
    allreduce(opts);
  }
}

TEST(Allocation, OptionsAndAlternatingShapesAllocateNothing) {
  ContextWorld world(2, kOrdered);
  world.run([&](const ContextPtr& context) {
    std::vector<float> data(1000);
    EXPECT_EQ(0u, allocationsOf([&] { reduceTwoShapes(context, data); }));
  });
}

TEST(Allocation, TheOtherCollectivesAllocateNothing) {
  ContextWorld world(4, kOrdered);
  world.run([](const ContextPtr& context) {
    constexpr size_t kPart = 1000;
    std::vector<float> part(kPart);
    std::vector<float> all(4 * kPart);
    std::vector<float> other(4 * kPart);
    ReduceOptions toRoot(context);
    toRoot.setOutput(all.data(), all.size());
    toRoot.setRoot(2);
    toRoot.setReduceFunction(kAdd);
    EXPECT_EQ(0u, allocationsOf([&] { reduce(toRoot); }));
    ReduceScatterOptions divided(context);
    divided.setOutput(all.data(), all.size());
    divided.setReduceFunction(average<float>);
    EXPECT_EQ(0u, allocationsOf([&] { reduce_scatter(divided); }));
    GathervOptions collected(context);
    collected.setInput(part.data(), kPart);
    collected.setOutput(all.data(), std::vector<size_t>(4, kPart));
    collected.setRoot(1);
    EXPECT_EQ(0u, allocationsOf([&] { gatherv(collected); }));
    ScatterOptions handedOut(context);
    handedOut.setInputs(
        std::vector<float*>{&all[3000], &all[0], &all[1000], &all[2000]},
        kPart);
    handedOut.setOutput(part.data(), kPart);
    handedOut.setRoot(1);
    EXPECT_EQ(0u, allocationsOf([&] { scatter(handedOut); }));
    AllgathervOptions shared(context);
    shared.setOutput(all.data(), std::vector<size_t>{1000, 0, 2000, 1});
    EXPECT_EQ(0u, allocationsOf([&] { allgatherv(shared); }));
    AlltoallvOptions exchanged(context);
    exchanged.setOutput(all.data(), std::vector<int64_t>(4, kPart));
    EXPECT_EQ(0u, allocationsOf([&] { alltoallv(exchanged); }));
    exchanged.setInput(other.data(), std::vector<int64_t>(4, kPart));
    EXPECT_EQ(0u, allocationsOf([&] { alltoallv(exchanged); }));
  });
}

TEST(Allocation, ObjectsAllocateNothing) {
  ContextWorld world(4, kOrdered);
  world.run([&](const ContextPtr& context) {
    std::vector<int> data(5000);
    std::vector<int> part(1250);
    AllreduceRing<int> ring(context, {data.data()}, 5000);
    AllreduceRingChunked<int> chunked(context, {data.data()}, 5000);
    AllreduceHalvingDoubling<int> halving(context, {data.data()}, 5000);
    AllreduceBcube<int> bcube(context, {data.data()}, 5000);
    AllreduceLocal<int> local(context, {data.data()}, 5000);
    ReduceScatterHalvingDoubling<int> scatter(
        context, {data.data()}, 5000, std::vector<int>{1000, 0, 3000, 1000});
    AllgatherRing<int> gather(context, {part.data()}, data.data(), 1250);
    BroadcastOneToAll<int> broadcast(context, {data.data()}, 5000, 1);
    BarrierAllToAll all(context);
    BarrierAllToOne one(context);
    PairwiseExchange exchange(context, 1000, 2);
    const auto check = [](Algorithm& algorithm) {
      EXPECT_EQ(0u, allocationsOf([&] { algorithm.run(); }))
          << typeid(algorithm).name();
    };
    check(ring);
    check(chunked);
    check(halving);
    check(bcube);
    check(local);
    check(scatter);
    check(gather);
    check(broadcast);
    check(all);
    check(one);
    check(exchange);
  });
}

// Plans of objects are theirs as long as they live: however many there are, the
// free functions find theirs again.
TEST(Allocation, ManyObjectsLeaveThePlansOfFreeFunctions) {
  ContextWorld world(2, kOrdered);
  world.run([&](const ContextPtr& context) {
    std::vector<float> data(1000);
    std::vector<std::unique_ptr<BarrierAllToAll>> objects;
    for (size_t i = 0; i < 130; i++) {
      objects.push_back(std::make_unique<BarrierAllToAll>(context));
    }
    EXPECT_EQ(0u, allocationsOf([&] { reduceTwoShapes(context, data); }));
  });
}

TEST(Allocation, OfLongPlansTheOldestGo) {
  ContextWorld world(2, kOrdered);
  world.run([&](const ContextPtr& context) {
    const auto reduce = [&](size_t count) {
      std::vector<float> data(count);
      AllreduceOptions options(context);
      options.setOutput(data.data(), count);
      options.setReduceFunction(kAdd);
      options.setMaxSegmentSize(sizeof(float));
      allocations = 0;
      allreduce(options);
      return allocations;
    };
    for (size_t i = 0; i < 11; i++) {
      reduce(100000 + i);
    }
    EXPECT_LT(reduce(100010), reduce(100000));
  });
}

// A reduce function throws where no memory is left to say so: what is in flight
// ends all the same before the call does, and the context has failed.
TEST(Allocation, AFailureNeedsNone) {
  for (const bool isAlloc : {true, false}) {
    ContextWorld world(2);
    const auto errors = world.outcomes([&](const ContextPtr& context) {
      const bool fails = context->rank == 1;
      std::vector<float> data(1 << 20);
      AllreduceOptions options(context);
      options.setOutput(data.data(), data.size());
      options.setTimeout(std::chrono::seconds(5));
      options.setReduceFunction(
          [&](void* c, const void* a, const void* b, size_t n) {
            if (fails) {
              exhausted = true;
              isAlloc ? throw std::bad_alloc() : throw 42;
            }
            sum<float>(c, a, b, n);
          });
      try {
        allreduce(options);
      } catch (...) {
        exhausted = false;
        if (fails) {
          EXPECT_EQ(0u, world.world().pending());
        }
        throw;
      }
    });
    EXPECT_THROW(std::rethrow_exception(errors[0]), IoException);
    if (isAlloc) {
      EXPECT_THROW(std::rethrow_exception(errors[1]), std::bad_alloc);
    } else {
      EXPECT_THROW(std::rethrow_exception(errors[1]), int);
    }
    EXPECT_THROW(barrier(BarrierOptions(world.context(1))), IoException);
  }
}

// The same over connections, and in memory that both ranks have mapped.
class AllocationTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr std::chrono::seconds kLong{20};

  // Of two ranks as threads. When rank 1 ends its context, only `atEnd`
  // allocations succeed before one does not.
  void run(const std::function<void(const ContextPtr& context)>& body,
           size_t atEnd = SIZE_MAX) {
    rendezvous::HashStore store;
    std::thread other([&] { runRank(1, store, body, atEnd); });
    runRank(0, store, body, SIZE_MAX);
    other.join();
  }

  // Ends with an error that comes before a deadline would.
  static void expectFailure(const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const TimeoutException& e) {
      ADD_FAILURE() << e.what();
    } catch (const IoException&) {
    }
  }

 private:
  static void runRank(int rank, rendezvous::Store& store,
                      const std::function<void(const ContextPtr&)>& body,
                      size_t atEnd) {
    std::shared_ptr<transport::Device> device =
        GetParam() == std::string("shm")
            ? transport::shm::CreateDevice()
            : transport::tcp::CreateDevice(transport::tcp::attr("localhost"));
    auto context = std::make_shared<rendezvous::Context>(rank, 2);
    context->setTimeout(kLong);
    context->connectFullMesh(store, device);
    body(context);
    succeeding = atEnd;
    context.reset();
    succeeding = SIZE_MAX;
  }
};

TEST_P(AllocationTest, AFailureOfAReduceFunctionNeedsNone) {
  run([](const ContextPtr& context) {
    const bool fails = context->rank == 1;
    std::vector<float> data(1000);
    AllreduceOptions options(context);
    options.setOutput(data.data(), data.size());
    options.setReduceFunction(
        [&](void* c, const void* a, const void* b, size_t n) {
          if (fails) {
            exhausted = true;
            throw 42;
          }
          sum<float>(c, a, b, n);
        });
    if (fails) {
      EXPECT_THROW(allreduce(options), int);
      exhausted = false;
    } else {
      // In mapped memory this rank does not need what the other one does last.
      try {
        allreduce(options);
      } catch (const TimeoutException& e) {
        ADD_FAILURE() << e.what();
      } catch (const IoException&) {
      }
    }
    expectFailure([&] { barrier(BarrierOptions(context)); });
  });
}

// The first operation with a tag takes memory, to count those. Where there is
// none, the others have begun it all the same.
TEST_P(AllocationTest, OneThatCannotBeginFailsOnAllRanks) {
  for (size_t succeed = 0; succeed < 2; succeed++) {
    run([succeed](const ContextPtr& context) {
      std::vector<float> data(1000);
      AllreduceOptions options(context);
      options.setOutput(data.data(), data.size());
      options.setReduceFunction(kAdd);
      allreduce(options);
      options.setTag(1);
      if (context->rank == 0) {
        expectFailure([&] { allreduce(options); });
      } else {
        succeeding = succeed;
        EXPECT_ANY_THROW(allreduce(options));
        succeeding = SIZE_MAX;
      }
      expectFailure([&] { barrier(BarrierOptions(context)); });
    });
  }
}

// A wait whose time is up gives up the context, also where the text of that
// cannot be had.
TEST_P(AllocationTest, AWaitThatEndsNeedsNone) {
  run([](const ContextPtr& context) {
    std::vector<char> data(1 << 20);
    auto buffer = context->createUnboundBuffer(data.data(), data.size());
    buffer->recv(1 - context->rank, 1);
    if (context->rank == 0) {
      expectFailure([&] { buffer->waitRecv(kLong); });
      return;
    }
    exhausted = true;
    EXPECT_THROW(buffer->waitRecv(std::chrono::milliseconds(50)),
                 std::bad_alloc);
    exhausted = false;
    expectFailure([&] { buffer->send(0, 1); });
  });
}

// Whichever it is: an operation fails, the next one does, and so does the end;
// the process goes on.
TEST_P(AllocationTest, OneThatFailsEndsNoProcess) {
  for (size_t succeed = 0; succeed < 40; succeed++) {
    run(
        [succeed](const ContextPtr& context) {
          std::vector<float> data(1000);
          AllreduceOptions options(context);
          options.setOutput(data.data(), data.size());
          options.setReduceFunction([](void* c, const void* a, const void* b,
                                       size_t n) { sum<float>(c, a, b, n); });
          options.setTimeout(std::chrono::seconds(5));
          for (const bool fails : {context->rank == 1, false, false}) {
            succeeding = fails ? succeed : SIZE_MAX;
            try {
              allreduce(options);
            } catch (const std::exception&) {
            }
            succeeding = SIZE_MAX;
          }
        },
        succeed);
  }
}

INSTANTIATE_TEST_SUITE_P(, AllocationTest, ::testing::Values("tcp", "shm"),
                         [](const auto& info) { return info.param; });

}  // namespace
GLOO_NAMESPACE_END
