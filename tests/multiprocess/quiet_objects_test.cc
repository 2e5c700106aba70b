// What a run of each class of the older API costs once all ranks have made a
// few: no allocation and no registration, over whatever links there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gloo/allgather_ring.h"
#include "gloo/allreduce_bcube.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_local.h"
#include "gloo/allreduce_ring.h"
#include "gloo/allreduce_ring_chunked.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/barrier_all_to_one.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/common/string.h"
#include "gloo/internal/statistics.h"
#include "gloo/pairwise_exchange.h"
#include "gloo/reduce_scatter.h"
#include "tests/support/transports.h"
#include "tests/support/usage.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

constexpr int kRanks = 4;

// One object of each class, each with vectors of its own.
class Objects {
 public:
  Objects(const ContextPtr& context, int count)
      : context_(context), mine_(context->rank + 1) {
    addAllreduce<AllreduceRing<int>>("AllreduceRing", count);
    addAllreduce<AllreduceRingChunked<int>>("AllreduceRingChunked", count);
    addAllreduce<AllreduceHalvingDoubling<int>>("AllreduceHalvingDoubling",
                                                count);
    addAllreduce<AllreduceBcube<int>>("AllreduceBcube", count);
    int* const one = vectorOf(count);
    int* const two = vectorOf(count);
    add<AllreduceLocal<int>>(
        "AllreduceLocal", [=, this] { expect(two, count, 2 * mine_); },
        std::vector<int*>{one, two}, count);
    const int part = count / kRanks;
    int* const scattered = vectorOf(count);
    add<ReduceScatterHalvingDoubling<int>>(
        "ReduceScatterHalvingDoubling",
        [=] { expect(scattered, part / 2, 1 + 2 + 3 + 4); },
        std::vector<int*>{scattered}, count,
        std::vector<int>{part, part / 2, part, part + part - part / 2});
    int* const all = vectorOf(count);
    add<AllgatherRing<int>>(
        "AllgatherRing",
        [=] {
          for (int rank = 0; rank < kRanks; rank++) {
            expect(all + rank * part, part, rank + 1);
          }
        },
        std::vector<const int*>{vectorOf(part)}, all, part);
    int* const sent = vectorOf(count);
    add<BroadcastOneToAll<int>>(
        "BroadcastOneToAll", [=] { expect(sent, count, 2); },
        std::vector<int*>{sent}, static_cast<size_t>(count), 1);
    add<BarrierAllToAll>("BarrierAllToAll", [] {});
    add<BarrierAllToOne>(
        "BarrierAllToOne", [] {}, 2);
    add<PairwiseExchange>(
        "PairwiseExchange", [] {}, count, 2);
  }

  struct Object {
    const char* name;
    std::unique_ptr<Algorithm> algorithm;
    std::function<void()> check;  // after the first run
  };
  std::vector<Object>& all() { return objects_; }

 private:
  int* vectorOf(int count) {
    vectors_.emplace_back(static_cast<size_t>(count), mine_);
    return vectors_.back().data();
  }

  static void expect(const int* data, int count, int value) {
    EXPECT_TRUE(
        std::all_of(data, data + count, [=](int v) { return v == value; }));
  }

  template <typename Class, typename... Arguments>
  void add(const char* name, std::function<void()> check,
           const Arguments&... arguments) {
    objects_.push_back({name, std::make_unique<Class>(context_, arguments...),
                        std::move(check)});
  }

  template <typename Class>
  void addAllreduce(const char* name, int count) {
    int* const one = vectorOf(count);
    int* const two = vectorOf(count);
    add<Class>(
        name,
        [=] {
          expect(one, count, 2 * (1 + 2 + 3 + 4));
          expect(two, count, 2 * (1 + 2 + 3 + 4));
        },
        std::vector<int*>{one, two}, count);
  }

  const ContextPtr context_;
  const int mine_;
  std::vector<std::vector<int>> vectors_;
  std::vector<Object> objects_;
};

// In all ranks together, which are threads. Now and then more messages than
// ever before are on their way, and the memory for them grows: but that ends.
// (Each rank has several pools that do so a few times, in different rounds: on
// a busy host up to three of these.)
constexpr int kRounds = 15;
constexpr int kQuiet = 10;

void expectQuiet(const ContextPtr& context, int count) {
  Objects objects(context, count);
  std::vector<int> quiet(objects.all().size());
  const auto& device = *context->getDevice();
  for (auto& object : objects.all()) {
    SCOPED_TRACE(MakeString(object.name, " of ", count));
    object.algorithm->run();
    object.check();
  }
  uint64_t registered = 0;
  for (int round = 0; round < kRounds; round++) {
    if (round == 1) {
      registered = internal::statisticsOf(device).registrations;
    }
    for (size_t i = 0; i < quiet.size(); i++) {
      const uint64_t before =
          allocations() + internal::statisticsOf(device).allocations;
      for (int run = 0; run < 5; run++) {
        objects.all()[i].algorithm->run();
      }
      const uint64_t after =
          allocations() + internal::statisticsOf(device).allocations;
      quiet[i] += after == before ? 1 : 0;
    }
  }
  EXPECT_EQ(registered, internal::statisticsOf(device).registrations);
  for (size_t i = 0; i < quiet.size(); i++) {
    EXPECT_GE(quiet[i], kQuiet) << objects.all()[i].name << " of " << count;
  }
  BarrierAllToAll(context).run();  // others still count
}

TEST(QuietTest, ObjectsAllocateAndRegisterNothing) {
  spawnContexts(Mode::kThreads, chosenTransport().make, kRanks,
                [](const ContextPtr& context) {
                  for (const int count : {40, 40000}) {
                    expectQuiet(context, count);
                  }
                });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
