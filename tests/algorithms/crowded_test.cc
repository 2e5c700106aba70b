// Collectives of more ranks than cores on memory that all ranks have mapped.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <string>

#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/internal/cores.h"
#include "gloo/transport/shm/device.h"
#include "gloo/types.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/cores.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing_support::Call;
using testing_support::checkCollective;
using testing_support::kChecks;

using ContextPtr = std::shared_ptr<Context>;

std::shared_ptr<transport::Device> makeDevice() {
  return transport::shm::CreateDevice();
}

std::shared_ptr<transport::Device> makeDeviceOnOneCore() {
  stayOn(0, 1);
  return makeDevice();
}

class CrowdedTest : public ::testing::TestWithParam<int> {};

// A broadcast's root writes all slots of a round, what comes next the same
// ones.
TEST_P(CrowdedTest, BroadcastsAndWhatFollowsThem) {
  spawnContexts(Mode::kThreads, makeDevice, GetParam(),
                [](const ContextPtr& context) {
                  unsigned seed = 0;
                  for (int turn = 0; turn < 24; turn++) {
                    for (const size_t count : {300, 20000, 300000}) {
                      const int root = turn % context->size;
                      const Call call{count, root, false, 0, seed++};
                      ASSERT_EQ("", checkCollective<int32_t>(2, context, call));
                      ASSERT_EQ("", checkCollective<int32_t>(0, context, call));
                    }
                  }
                });
}

// More ranks than cores, though not more than the machine has.
TEST_P(CrowdedTest, OnOneCore) {
  spawnContexts(
      Mode::kProcesses, makeDeviceOnOneCore, GetParam(),
      [](const ContextPtr& context) {
        unsigned seed = 0;
        for (const size_t count : {3, 5000, 40001, 100000, 600000}) {
          for (size_t which = 0; which < kChecks; which++) {
            const Call call{count, 0, seed % 2 == 0, 0, seed};
            ASSERT_EQ("", checkCollective<int32_t>(which, context, call))
                << "collective " << which << ", count " << count;
            seed++;
          }
        }
      });
}

// A whole sweep; in lanes, and what is short over the links, too.
TEST(DirectProcesses, SixtyFourOnFewCores) {
  spawnContexts(
      Mode::kProcesses,
      [] {
        stayOn(0, 2);
        return makeDevice();
      },
      64,
      [](const ContextPtr& context) {
        EXPECT_TRUE(laneOf(context, kBarrierSlotPrefix, 0).crowded());
        for (const size_t count : {1, 16, 256, 4096, 65536, 1 << 20}) {
          Call call{count, 0, false, 0, static_cast<unsigned>(count)};
          ASSERT_EQ("", testing_support::checkAllreduce<float>(context, call));
          if (count <= 256) {  // over the links
            call.algorithm = "recursive_doubling";
            ASSERT_EQ("",
                      testing_support::checkAllreduce<float>(context, call));
          }
        }
      });
}

// Lanes with the slots of ranks that have a core each are better than none.
TEST(CrowdedLaneTest, SlotsAreShorterWhereThereIsNoRoom) {
  const auto slotBytesOf = [](rlim_t limit) {
    spawnContexts(
        Mode::kProcesses,
        [limit] {
          const rlimit small{limit, limit};
          EXPECT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &small));
          return makeDeviceOnOneCore();
        },
        5,
        [limit](const ContextPtr& context) {
          const internal::Lane& lane = laneOf(context, kBarrierSlotPrefix, 0);
          EXPECT_EQ(limit == RLIM_INFINITY ? 512u << 10 : 128u << 10,
                    lane.slotBytes());
          const Call call{100000, 0, false, 0, 1};
          ASSERT_EQ("", checkCollective<int32_t>(0, context, call));
        });
  };
  slotBytesOf(RLIM_INFINITY);
  slotBytesOf(10 << 20);
}

// So that they give it away to each other, and to nobody else.
TEST(CrowdedLaneTest, KnowsWhoIsOnTheSameCore) {
  const bool hasTwo = internal::coreAt(internal::allowedCores(), 1) >= 0;
  spawnContexts(
      Mode::kProcesses,
      [] {
        stayOn(0, 2);
        return makeDevice();
      },
      3,
      [hasTwo](const ContextPtr& context) {
        const bool apart = hasTwo && context->rank == 2;
        stayOn(apart ? 1 : 0, 1);
        BarrierOptions opts(context);
        for (int i = 0; i < 3; i++) {
          barrier(opts);
        }
        const internal::Lane& lane = laneOf(context, kBarrierSlotPrefix, 0);
        EXPECT_TRUE(lane.crowded());
        EXPECT_EQ(!apart, lane.sharesCore(context->rank == 0 ? 1 : 0));
        if (context->rank != 2) {
          EXPECT_EQ(!hasTwo, lane.sharesCore(2));
        }
        barrier(opts);
      });
}

// On one core, mostly before the other rank has seen that there are lanes.
TEST(CrowdedLaneTest, WhoLeavesAtOnceIsNamed) {
  for (int turn = 0; turn < 10; turn++) {
    spawnContexts(Mode::kProcesses, makeDeviceOnOneCore, 2,
                  [](const ContextPtr& context) {
                    if (context->rank == 0) {
                      context->closeConnections();
                      return;
                    }
                    context->setTimeout(std::chrono::seconds(5));
                    std::string why;
                    try {
                      barrier(BarrierOptions(context));
                    } catch (const IoException& e) {
                      why = e.what();
                    }
                    EXPECT_NE(why.find("rank 0 left"), std::string::npos)
                        << why;
                  });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CrowdedTest, ::testing::Values(2, 3, 4, 5, 8));

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
