// Memory of the shared allocator at limits of the system: how it gets to the
// other ranks.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "gloo/allgatherv.h"
#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/context.h"
#include "gloo/rendezvous/context.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/types.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

constexpr size_t kCount = 20000;
constexpr size_t kBytes = kCount * sizeof(int);

class Vectors {
 public:
  Vectors()
      : input_(transport::shm::allocate(kBytes)),
        output_(transport::shm::allocate(kBytes)) {
    std::fill(input(), input() + kCount, 1);
  }
  int* input() { return static_cast<int*>(input_.data()); }
  int* output() { return static_cast<int*>(output_.data()); }

 private:
  transport::shm::Memory input_;
  transport::shm::Memory output_;
};

// Whether nothing went through this rank's slots. All ranks.
bool reducesInPlace(const ContextPtr& context, Vectors& vectors) {
  internal::Lane& lane = laneOf(context, kAllreduceSlotPrefix, 0);
  barrier(BarrierOptions(context));
  for (int rank = 0; rank < context->size && context->rank == 0; rank++) {
    for (const uint64_t round : {0, 1}) {
      std::memset(lane.slot(rank, round), 0x55, lane.slotBytes());
    }
  }
  barrier(BarrierOptions(context));
  AllreduceOptions opts(context);
  opts.setInput(vectors.input(), kCount);
  opts.setOutput(vectors.output(), kCount);
  opts.setReduceFunction(testing_support::adder<int>());
  allreduce(opts);
  EXPECT_TRUE(std::all_of(vectors.output(), vectors.output() + kCount,
                          [&](int value) { return value == context->size; }));
  bool untouched = true;
  for (const uint64_t round : {0, 1}) {
    const char* const slot = lane.slot(context->rank, round);
    untouched = untouched && std::all_of(slot, slot + lane.slotBytes(),
                                         [](char c) { return c == 0x55; });
  }
  return untouched;
}

void limitDescriptors(rlim_t most) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = most;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// Who has these has no limit of descriptors on their way.
void giveUpRights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
}

// What a broken peer says of where its vectors lie leads nowhere but to memory
// that it has lent.
TEST(LentVectorsTest, OffersAreChecked) {
  static std::atomic<uint64_t> ids[2];
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
      [](const ContextPtr& context) {
        Vectors vectors;
        EXPECT_TRUE(reducesInPlace(context, vectors));
        internal::Lane& lane = laneOf(context, kAllreduceSlotPrefix, 0);
        bool isNew = false;
        ids[context->rank] = lane.placeOf(vectors.input(), 1, &isNew).memory;
        EXPECT_FALSE(isNew);
        barrier(BarrierOptions(context));
        const int other = 1 - context->rank;
        const uint64_t id = ids[other];
        constexpr size_t kWhole = (kBytes + 4095) / 4096 * 4096;
        EXPECT_NE(lane.map(other, {id, 0}, kWhole, true), nullptr);
        EXPECT_EQ(lane.map(other, {id, 0}, kWhole + 1, true), nullptr);
        EXPECT_EQ(lane.map(other, {id, kWhole}, 1, true), nullptr);
        EXPECT_EQ(lane.map(other, {id, UINT64_MAX - 3}, 8, true), nullptr);
        EXPECT_EQ(lane.map(other, {id, 8}, SIZE_MAX, true), nullptr);
        EXPECT_EQ(lane.map(other, {id + 1, 0}, 8, true), nullptr);
        barrier(BarrierOptions(context));
      });
}

// All of them together hand over more than a user may have on their way.
TEST(LentVectorsTest, ManyRanksTakeTurns) {
  constexpr int kRanks = 20;
  spawnContexts(
      Mode::kProcesses, [] { return transport::shm::CreateDevice(); }, kRanks,
      [](const ContextPtr& context) {
        Vectors vectors;
        barrier(BarrierOptions(context));
        giveUpRights();
        limitDescriptors(320);
        EXPECT_TRUE(reducesInPlace(context, vectors));
      });
}

// ---- Ranks that share a device

void expectInPlace(const ContextPtr& context) {
  ASSERT_NE(internal::Channel::of(Inside::transport(*context)).direct(),
            nullptr)
      << "of " << context->size << " ranks, " << context->rank << " has none";
  Vectors vectors;
  EXPECT_TRUE(reducesInPlace(context, vectors));
}

TEST(LentVectorsTest, RanksMayShareADevice) {
  const transport::tcp::attr loopback("127.0.0.1");
  transport::DeviceAttr automatic;
  automatic.tcp = loopback;
  const std::shared_ptr<transport::Device> devices[] = {
      transport::shm::CreateDevice(), transport::CreateDevice(automatic),
      transport::tcp::CreateDevice(loopback)};
  for (const auto& device : devices) {
    SCOPED_TRACE(device->str());
    for (const int size : {3, 4}) {
      spawnContexts(
          Mode::kThreads, [&] { return device; }, size, &expectInPlace);
    }
  }
}

// Which have none of the memory from their own process.
TEST(LentVectorsTest, SomeOfSeveralProcessesMayShareADevice) {
  constexpr int kProcesses = 2;
  constexpr int kEach = 2;
  spawnSeats(Mode::kProcesses, kProcesses, [](Seat& seat) {
    auto device = transport::shm::CreateDevice();
    std::vector<std::thread> ranks;
    for (int i = 0; i < kEach; i++) {
      ranks.emplace_back([&, device, rank = kEach * seat.rank + i]() mutable {
        const auto context =
            std::make_shared<rendezvous::Context>(rank, kProcesses * kEach);
        context->setTimeout(contextTimeout());
        context->connectFullMesh(seat.store, device);
        expectInPlace(context);
      });
    }
    for (std::thread& rank : ranks) {
      rank.join();
    }
  });
}

// One of the ranks has no descriptor left for a moment.
TEST(LentVectorsTest, WithoutADescriptorForAMomentItIsTriedAgain) {
  spawnContexts(
      Mode::kProcesses, [] { return transport::shm::CreateDevice(); }, 2,
      [](const ContextPtr& context) {
        Vectors vectors;
        rlimit before{};
        ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
        if (context->rank == 1) {
          limitDescriptors(3);
        }
        EXPECT_FALSE(reducesInPlace(context, vectors));
        limitDescriptors(before.rlim_cur);
        EXPECT_TRUE(reducesInPlace(context, vectors));
        EXPECT_TRUE(reducesInPlace(context, vectors));
      });
}

// ---- Ranks that have nothing to offer

// More than a few slots take.
constexpr size_t kMany = 400000;

// The rounds of an allgatherv that follows one with the same vectors, on this
// rank. Its own is in such memory, if `shared`.
uint64_t roundsOfAllgatherv(const ContextPtr& context,
                            const std::vector<size_t>& counts, bool shared) {
  const auto rank = static_cast<size_t>(context->rank);
  const size_t own = counts[rank];
  const auto lent = transport::shm::allocate(kMany * sizeof(int));
  std::vector<int> ordinary(own);
  int* const input = own == 0 ? nullptr
                     : shared ? static_cast<int*>(lent.data())
                              : ordinary.data();
  std::fill_n(input, own, context->rank);
  std::vector<int> expected;
  for (size_t r = 0; r < counts.size(); r++) {
    expected.insert(expected.end(), counts[r], static_cast<int>(r));
  }
  internal::Lane& lane = laneOf(context, kAllgatherSlotPrefix, 0);
  uint64_t rounds = 0;
  for (int i = 0; i < 2; i++) {
    std::vector<int> output(expected.size(), -1);
    AllgathervOptions opts(context);
    opts.setInput(input, own);
    opts.setOutput(output.data(), counts);
    const uint64_t before = lane.round();
    allgatherv(opts);
    rounds = lane.round() - before;
    EXPECT_EQ(expected, output);
  }
  return rounds;
}

void onRanks(int size, const std::function<void(const ContextPtr&)>& body) {
  for (const Mode mode : {Mode::kThreads, Mode::kProcesses}) {
    spawnContexts(
        mode, [] { return transport::shm::CreateDevice(); }, size, body);
  }
}

TEST(LentVectorsTest, AnEmptyPartNeedsNoMemory) {
  for (const auto& counts : std::vector<std::vector<size_t>>{
           {kMany, kMany, 0}, {0, kMany, 0, 5}, {kMany, 0}, {0, kMany}}) {
    onRanks(static_cast<int>(counts.size()), [&](const ContextPtr& context) {
      EXPECT_EQ(2u, roundsOfAllgatherv(context, counts, true));
    });
  }
}

// It costs a round if some offer and some do not.
TEST(LentVectorsTest, AnEmptyPartCostsNothingWhereOthersHaveOrdinaryMemory) {
  onRanks(3, [](const ContextPtr& context) {
    const uint64_t full = roundsOfAllgatherv(context, {kMany, kMany, 1}, false);
    EXPECT_EQ(full, roundsOfAllgatherv(context, {kMany, kMany, 0}, false));
    EXPECT_EQ(full + 1, roundsOfAllgatherv(context, {kMany, kMany, 0},
                                           context->rank == 0));
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
