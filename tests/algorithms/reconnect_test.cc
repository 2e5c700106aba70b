// A context that is connected a second time: what was found out about the first
// connections, and what was made on them, does not serve the second.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gloo/allgather_ring.h"
#include "gloo/allreduce.h"
#include "gloo/allreduce_local.h"
#include "gloo/allreduce_ring.h"
#include "gloo/barrier.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/pairwise_exchange.h"
#include "gloo/reduce_scatter.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;
// Replaces the connections of the context that it is called for.
using Reconnect = std::function<void()>;

void onTwoRanks(
    const DeviceMaker& maker,
    const std::function<void(const ContextPtr&, const Reconnect&)>& body) {
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    auto device = maker();
    auto context = std::make_shared<rendezvous::Context>(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    const auto connect = [&](const char* prefix) {
      context->connectFullMesh(
          std::make_shared<rendezvous::PrefixStore>(prefix, seat.store),
          device);
    };
    connect("first");
    body(context, [&] { connect("second"); });
  });
}

void onTwoRanks(
    const std::function<void(const ContextPtr&, const Reconnect&)>& body) {
  onTwoRanks([] { return transport::shm::CreateDevice(); }, body);
}

void (*const kSum)(void*, const void*, const void*, size_t) = &sum<int>;

AllreduceOptions sumOf(const ContextPtr& context, std::vector<int>& values) {
  AllreduceOptions options(context);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction(kSum);
  return options;
}

// New options on one rank meet the old ones of the other, so that these are
// seen to use the new connections.
TEST(ReconnectTest, OptionsServeTheNewConnections) {
  onTwoRanks([](const ContextPtr& context, const Reconnect& reconnect) {
    std::vector<int> values(8);
    const AllreduceOptions before = sumOf(context, values);
    const auto check = [&](const AllreduceOptions& options) {
      values.assign(values.size(), 1 + context->rank);
      allreduce(options);
      EXPECT_EQ(std::vector<int>(8, 3), values);
    };
    for (int i = 0; i < 3; i++) {
      check(before);
    }
    const internal::Prepared* const first = before.changing().prepared();
    EXPECT_NE(nullptr, first);
    reconnect();
    const AllreduceOptions after = sumOf(context, values);
    for (int i = 0; i < 3; i++) {
      check(context->rank == 0 ? before : after);
      check(context->rank == 1 ? before : after);
      check(before);
    }
    // Prepared once for these as well, and not once more for each call.
    const internal::Prepared* const prepared = before.changing().prepared();
    check(before);
    EXPECT_NE(first, prepared);
    EXPECT_EQ(prepared, before.changing().prepared());
  });
}

// What an options object keeps of earlier calls is bounded.
TEST(ReconnectTest, OptionsWhoseContextChangesWithEachCallDoNotGrow) {
  onTwoRanks([](const ContextPtr& context, const Reconnect&) {
    std::vector<int> values(8);
    const AllreduceOptions options = sumOf(context, values);
    int replaced = 0;
    for (int i = 0; i < 300; i++) {
      context->base = 2 + i % 2;
      values.assign(values.size(), 1 + context->rank);
      allreduce(options);
      ASSERT_EQ(std::vector<int>(8, 3), values);
      const internal::Prepared* at = options.changing().prepared();
      for (replaced = 0; at != nullptr; at = at->earlier.get()) {
        replaced++;
      }
    }
    EXPECT_GT(replaced, 10);
    EXPECT_LT(replaced, 100);
  });
}

// One of each that sends, on the memory given.
std::vector<std::unique_ptr<Algorithm>> objectsOn(const ContextPtr& context,
                                                  int* at, int* other) {
  std::vector<std::unique_ptr<Algorithm>> all;
  const std::vector<int*> one{at};
  const std::vector<const int*> input{other};
  all.push_back(std::make_unique<AllreduceRing<int>>(context, one, 8));
  all.push_back(std::make_unique<ReduceScatterHalvingDoubling<int>>(
      context, one, 8, std::vector<int>{4, 4}));
  all.push_back(std::make_unique<AllgatherRing<int>>(context, input, at, 4));
  all.push_back(std::make_unique<BroadcastOneToAll<int>>(context, one, 8));
  all.push_back(std::make_unique<BarrierAllToAll>(context));
  all.push_back(std::make_unique<PairwiseExchange>(context, 8, 1));
  return all;
}

void checkObjects(const ContextPtr& context, const Reconnect& reconnect) {
  std::vector<int> values(8, 1);
  std::vector<int> other(8, 5);
  auto objects = objectsOn(context, values.data(), other.data());
  AllreduceLocal<int> local(context, {values.data(), other.data()}, 8);
  for (const auto& object : objects) {
    object->run();
  }
  reconnect();
  values.assign(values.size(), 1);
  for (const auto& object : objects) {
    try {
      object->run();
      ADD_FAILURE() << "no error";
    } catch (const InvalidOperationException& e) {
      EXPECT_NE(std::string::npos, std::string(e.what()).find("replaced"))
          << e.what();
    }
  }
  EXPECT_EQ(std::vector<int>(8, 1), values) << "changed by a call that threw";
  // In whatever order the old ones and the new ones are destroyed.
  auto anew = objectsOn(context, values.data(), other.data());
  objects.clear();
  anew[0]->run();
  EXPECT_EQ(std::vector<int>(8, 2), values);
  local.run();
  EXPECT_EQ(std::vector<int>(8, 7), values);
}

TEST(ReconnectTest, ObjectsSayThatTheyAreOfTheOldConnections) {
  onTwoRanks(checkObjects);
  onTwoRanks(
      [] {
        return transport::tcp::CreateDevice(transport::tcp::attr("localhost"));
      },
      checkObjects);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
