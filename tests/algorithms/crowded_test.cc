// Collectives of more ranks than cores on memory that all ranks have mapped.
#include <gtest/gtest.h>
#include <sched.h>

#include "gloo/context.h"
#include "gloo/internal/cores.h"
#include "gloo/transport/shm/device.h"
#include "tests/support/collectives.h"
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
      Mode::kProcesses,
      [] {
        const cpu_set_t all = internal::allowedCores();
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(internal::coreAt(all, 0), &one);
        sched_setaffinity(0, sizeof(one), &one);
        return makeDevice();
      },
      GetParam(),
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

INSTANTIATE_TEST_SUITE_P(Ranks, CrowdedTest, ::testing::Values(2, 3, 4, 5, 8));

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
