// Where ranks write what others read: places that do not overlap, that both of
// two ranks use in turn, and that are filled to their last byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/transport/shm/device.h"
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

using ContextPtr = std::shared_ptr<Context>;

std::shared_ptr<transport::Device> makeDevice() {
  return transport::shm::CreateDevice();
}

class SlotsTest : public ::testing::TestWithParam<int> {};

// Of every pair of ranks, and of each rank to itself.
void expectPlacesApart(internal::Lane& lane, uint64_t round) {
  const auto ranks = static_cast<size_t>(lane.size());
  const size_t place = lane.slotBytes() / ranks;
  const char* const begin = lane.slot(0, round);
  std::vector<const char*> places;
  for (int from = 0; from < lane.size(); from++) {
    for (int to = 0; to < lane.size(); to++) {
      const char* const at = lane.slotBetween(from, to, round, place);
      EXPECT_GE(at, begin);
      EXPECT_LE(at + place, begin + ranks * lane.slotBytes());
      places.push_back(at);
    }
  }
  lane.swapPlaces(round);
  for (int from = 0, i = 0; from < lane.size(); from++) {
    for (int to = 0; to < lane.size(); to++, i++) {
      EXPECT_EQ(places[static_cast<size_t>(i)],
                lane.slotBetween(to, from, round, place))
          << "who has read from " << from << " in round " << round
          << " does not write there next";
    }
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); i++) {
    EXPECT_GE(places[i], places[i - 1] + place) << "round " << round;
  }
}

TEST_P(SlotsTest, PlacesBetweenRanksAreUsedInTurnAndDoNotOverlap) {
  spawnContexts(Mode::kThreads, makeDevice, GetParam(),
                [](const ContextPtr& context) {
                  internal::Lane& lane = laneOf(context, kBarrierSlotPrefix, 0);
                  for (uint64_t round = 1; round < 9; round++) {
                    expectPlacesApart(lane, round);
                  }
                });
}

// Of two chunks: whatever else takes rounds, who has read in one operation
// writes in the next.
TEST_P(SlotsTest, PlacesChangeHandsFromOneReductionToTheNext) {
  spawnContexts(
      Mode::kThreads, makeDevice, GetParam(), [](const ContextPtr& context) {
        internal::Lane& lane = laneOf(context, kAllreduceSlotPrefix, 0);
        std::vector<float> data(lane.slotBytes() * 3 / 2 / sizeof(float));
        AllreduceOptions options(context);
        options.setOutput(data.data(), data.size());
        void (*const add)(void*, const void*, const void*, size_t) =
            &sum<float>;
        options.setReduceFunction(add);
        for (int i = 0; i < 4; i++) {
          for (const uint64_t half : {0, 1}) {
            SCOPED_TRACE(half);
            const char* const before = lane.slotBetween(0, 1, half, 64);
            allreduce(options);
            EXPECT_NE(before, lane.slotBetween(0, 1, half, 64));
          }
        }
      });
}

template <typename T>
void checkAll(const ContextPtr& context, size_t count, unsigned seed) {
  for (size_t which = 0; which < kChecks; which++) {
    const Call call{count, static_cast<int>(seed), seed % 2 == 1, 0, seed};
    ASSERT_EQ("", checkCollective<T>(which, context, call))
        << context->size << " ranks, count " << count;
  }
}

// As many elements as slots hold in a round, and one less and more, and one
// more than in two: with other numbers of ranks than powers of two, a slot
// cannot be cut into as many parts without rest.
TEST_P(SlotsTest, FullSlotsGiveWhatTheOracleSays) {
  spawnContexts(
      Mode::kThreads, makeDevice, GetParam(), [](const ContextPtr& context) {
        const size_t bytes = laneOf(context, kBarrierSlotPrefix, 0).slotBytes();
        unsigned seed = 0;
        const size_t count = bytes / sizeof(float);
        for (const size_t off : {0, 1, 2}) {
          checkAll<float>(context, count - 1 + off, seed++);
        }
        checkAll<float>(context, 2 * count + 1, seed++);
        checkAll<Triple>(context, bytes / sizeof(Triple), seed++);
      });
}

// Two ranks reduce vectors from 32 KiB on by halves, in two chunks from 128 KiB
// on and in more from 512 KiB on; other operations use the same slots next.
TEST(TwoSlotsTest, HalvesGiveWhatTheOracleSays) {
  spawnContexts(Mode::kThreads, makeDevice, 2, [](const ContextPtr& context) {
    unsigned seed = 0;
    for (const size_t kib : {32, 128, 512}) {
      const size_t count = kib * 1024 / sizeof(float);
      for (const size_t off : {0, 1, 2, 17}) {
        checkAll<float>(context, count - 1 + off, seed++);
      }
      for (const size_t more : {1, 2}) {  // in place and not
        checkAll<Triple>(context, kib * 1024 / sizeof(Triple) + more, seed++);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SlotsTest, ::testing::Values(3, 6, 7));

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
