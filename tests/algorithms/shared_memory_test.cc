// Collectives on vectors of the shared allocator: results against the oracle,
// beside ranks with other memory, that nothing is copied, and that nobody
// writes to it after a failure.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/broadcast.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/transport/shm/allocate.h"
#include "gloo/transport/shm/device.h"
#include "gloo/types.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing_support::Call;
using testing_support::checkCollective;
using testing_support::kChecks;
using testing_support::Triple;
using testing_support::Vector;
using testing_support::VectorArena;
using testing_support::VectorMemory;

using ContextPtr = std::shared_ptr<Context>;

std::shared_ptr<transport::Device> makeDevice() {
  return transport::shm::CreateDevice();
}

// Around the least size, and with a slice that is short or empty.
template <typename T>
void checkAll(const ContextPtr& context, unsigned seed) {
  for (const size_t bytes : {1000, 33001, 70000, 600001}) {
    for (size_t which = 0; which < kChecks; which++) {
      for (const bool inPlace : {false, true}) {
        const Call call{bytes / sizeof(T), static_cast<int>(seed), inPlace, 0,
                        seed};
        ASSERT_EQ("", checkCollective<T>(which, context, call))
            << context->size << " ranks, " << bytes << " bytes"
            << (inPlace ? ", in place" : "");
      }
    }
    seed++;
  }
}

struct Case {
  int size;
  Mode mode;
};

class SharedMemoryTest : public ::testing::TestWithParam<Case> {
 protected:
  template <typename Body>
  void onAll(const Body& body) {
    spawnContexts(GetParam().mode, makeDevice, GetParam().size, body);
  }
};

TEST_P(SharedMemoryTest, GivesWhatTheOracleSays) {
  onAll([](const ContextPtr& context) {
    VectorArena::mine().use(VectorMemory::kArena);
    checkAll<float>(context, 0);
    checkAll<Triple>(context, 1);
    VectorArena::mine().use(VectorMemory::kOrdinary);
  });
}

// Handed over, mapped and given back for each operation.
TEST_P(SharedMemoryTest, EachVectorMayBeNew) {
  onAll([](const ContextPtr& context) {
    VectorArena::mine().use(VectorMemory::kShared);
    checkAll<int64_t>(context, 0);
    VectorArena::mine().use(VectorMemory::kOrdinary);
  });
}

TEST_P(SharedMemoryTest, RanksMayDifferInWhatTheyUse) {
  onAll([](const ContextPtr& context) {
    std::mt19937 random(static_cast<unsigned>(context->rank));
    for (unsigned i = 0; i < 60; i++) {
      VectorArena::mine().use(static_cast<VectorMemory>(random() % 3));
      const Call call{9000 + 4000 * i, static_cast<int>(i), i % 2 == 0, 0, i};
      ASSERT_EQ("", checkCollective<int>(i % kChecks, context, call)) << i;
    }
    VectorArena::mine().use(VectorMemory::kOrdinary);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, SharedMemoryTest,
    ::testing::Values(Case{2, Mode::kThreads}, Case{3, Mode::kThreads},
                      Case{5, Mode::kThreads}, Case{2, Mode::kProcesses},
                      Case{4, Mode::kProcesses}),
    [](const auto& info) {
      return MakeString(info.param.size, "_", name(info.param.mode));
    });

AllreduceOptions sumOptions(const ContextPtr& context, Vector<float>& values,
                            uint32_t tag = 0) {
  AllreduceOptions opts(context);
  opts.setOutput(values.data(), values.size());
  opts.setReduceFunction(testing_support::adder<float>());
  opts.setTag(tag);
  return opts;
}

// The slots of its lane stay as they were made.
TEST(SharedMemory, NothingIsCopiedThroughSlots) {
  for (const int size : {2, 3}) {
    spawnContexts(Mode::kThreads, makeDevice, size, [](const auto& context) {
      const auto slotsAreEmpty = [&] {
        internal::Lane& lane = laneOf(context, kAllreduceSlotPrefix, 0);
        for (const uint64_t round : {0, 1}) {
          const char* const slot = lane.slot(context->rank, round);
          if (std::any_of(slot, slot + lane.slotBytes(),
                          [](char c) { return c != 0; })) {
            return false;
          }
        }
        return true;
      };
      VectorArena::mine().use(VectorMemory::kShared);
      Vector<float> values(100000, 1.0f);
      VectorArena::mine().use(VectorMemory::kOrdinary);
      for (int i = 0; i < 3; i++) {
        allreduce(sumOptions(context, values));
      }
      EXPECT_EQ(values.back(), std::pow(context->size, 3));
      EXPECT_TRUE(slotsAreEmpty());
      barrier(BarrierOptions(context));
      // The counterproof.
      Vector<float> others(100000, 1.0f);
      allreduce(sumOptions(context, others));
      EXPECT_FALSE(slotsAreEmpty());
    });
  }
}

TEST(SharedMemory, ResultsAreTheSameBitsOnAllRanks) {
  for (const int size : {2, 4}) {
    spawnContexts(Mode::kThreads, makeDevice, size, [](const auto& context) {
      constexpr size_t kCount = 50000;
      const auto fill = [&](Vector<float>& values) {
        for (size_t i = 0; i < kCount; i++) {
          values[i] = 1.0f / static_cast<float>(i + 3 * context->rank + 1);
        }
      };
      VectorArena::mine().use(VectorMemory::kShared);
      Vector<float> shared(kCount);
      VectorArena::mine().use(VectorMemory::kOrdinary);
      Vector<float> other(kCount);
      fill(shared);
      fill(other);
      allreduce(sumOptions(context, shared));
      allreduce(sumOptions(context, other));
      EXPECT_EQ(0, std::memcmp(shared.data(), other.data(), 4 * kCount));
    });
  }
}

// Two lanes find the same memory new at the same time.
TEST(SharedMemory, ThreadsMayShareAnAllocation) {
  spawnContexts(Mode::kProcesses, makeDevice, 2, [](const auto& context) {
    for (int turn = 0; turn < 20; turn++) {
      constexpr size_t kCount = 20000;
      auto memory = transport::shm::allocate(2 * kCount * sizeof(int));
      auto* const values = static_cast<int*>(memory.data());
      std::fill(values, values + 2 * kCount, context->rank + 1);
      const auto reduceHalf = [&](uint32_t half) {
        AllreduceOptions opts(context);
        opts.setOutput(values + half * kCount, kCount);
        opts.setReduceFunction(testing_support::adder<int>());
        opts.setTag(half);
        allreduce(opts);
      };
      std::thread other([&] { reduceHalf(1); });
      reduceHalf(0);
      other.join();
      ASSERT_TRUE(std::all_of(values, values + 2 * kCount,
                              [](int value) { return value == 3; }));
    }
  });
}

size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    found += line.find("memfd:gloo") != std::string::npos ? 1 : 0;
  }
  return found;
}

TEST(SharedMemory, WhatIsFreedIsUnmapped) {
  spawnContexts(Mode::kProcesses, makeDevice, 2, [](const auto& context) {
    VectorArena::mine().use(VectorMemory::kShared);
    size_t before = 0;
    for (int i = 0; i < 100; i++) {
      Vector<float> values(20000, 1.0f);
      allreduce(sumOptions(context, values));
      ASSERT_EQ(values[0], 2.0f);
      before = i == 10 ? mappings() : before;
    }
    VectorArena::mine().use(VectorMemory::kOrdinary);
    EXPECT_LE(mappings(), before + 2);
  });
}

size_t descriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(open), end(open)));
}

// What not all ranks can use in place is not handed over.
TEST(SharedMemory, WhatOneRankAloneOffersTakesNoDescriptors) {
  spawnContexts(Mode::kProcesses, makeDevice, 2, [](const auto& context) {
    const auto reduce = [&](VectorMemory memory) {
      VectorArena::mine().use(memory);
      Vector<float> values(20000, 1.0f);
      allreduce(sumOptions(context, values));
      VectorArena::mine().use(VectorMemory::kOrdinary);
      ASSERT_EQ(values[0], 2.0f);
    };
    reduce(VectorMemory::kShared);
    const size_t before = descriptors();
    for (int i = 0; i < 50; i++) {
      reduce(context->rank == 0 ? VectorMemory::kShared
                                : VectorMemory::kOrdinary);
    }
    reduce(VectorMemory::kShared);  // takes all that was handed over
    EXPECT_LE(descriptors(), before + 4);
  });
}

// A copy of 128 MiB takes longer than that; what is in front comes last.
TEST(SharedMemory, TheDeadlineEndsARankThatIsAtWork) {
  spawnContexts(Mode::kThreads, makeDevice, 2, [](const auto& context) {
    constexpr size_t kCount = 32 << 20;
    auto memory = transport::shm::allocate(kCount * sizeof(int));
    auto* const values = static_cast<int*>(memory.data());
    std::vector<int> other(context->rank == 0 ? 0 : kCount);
    values[0] = 1;
    BroadcastOptions opts(context);
    opts.setRoot(0);
    opts.setOutput(context->rank == 0 ? values : other.data(), kCount);
    broadcast(opts);
    opts.setTimeout(std::chrono::milliseconds(2));
    values[0] = 2;
    EXPECT_THROW(broadcast(opts), TimeoutException);
    if (context->rank == 1) {
      EXPECT_EQ(1, other.front());
    }
  });
}

// Of the peers, one writes on after the other's call has thrown.
TEST(SharedMemory, NobodyWritesAfterAFailure) {
  spawnContexts(Mode::kThreads, makeDevice, 3, [](const auto& context) {
    constexpr size_t kCount = 300000;
    static std::atomic<int> stopped;
    stopped = 0;
    VectorArena::mine().use(VectorMemory::kShared);
    Vector<int> values(kCount, context->rank + 1);
    VectorArena::mine().use(VectorMemory::kOrdinary);
    barrier(BarrierOptions(context));
    AllreduceOptions opts(context);
    opts.setOutput(values.data(), kCount);
    int calls = 0;
    opts.setReduceFunction(
        [&](void* c, const void* a, const void* b, size_t n) {
          if (context->rank == 2 && ++calls == 3) {
            throw std::runtime_error("no more");
          }
          // Rank 1 goes on when the others have returned.
          while (context->rank == 1 && calls++ == 0 && stopped < 2) {
            std::this_thread::yield();
            calls = 0;
          }
          sum<int>(c, a, b, n);
        });
    EXPECT_ANY_THROW(allreduce(opts));
    const Vector<int> then = values;
    stopped++;
    while (stopped < 3) {
      std::this_thread::yield();
    }
    EXPECT_EQ(0, std::memcmp(then.data(), values.data(), 4 * kCount));
    // It is memory like any other.
    std::fill(values.begin(), values.end(), 7);
    EXPECT_EQ(values.back(), 7);
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
