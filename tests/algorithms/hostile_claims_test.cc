// A rank of a group overwrites the claims of the lanes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <memory>

#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/transport/shm/device.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

// Two threads of a rank are not in one lane, even if the claims say that it is
// idle.
TEST(HostileClaimsTest, ALaneInUseIsNotEnteredAgain) {
  std::barrier both(2);
  const auto run = [&both](const ContextPtr& context) {
    const auto& line = laneOf(context, kBarrierSlotPrefix, 0).line(0, 0);
    const AllLanes all(context, 0);
    both.arrive_and_wait();
    // Behind the preface, the lock and the names: of each lane and rank.
    auto* const counts = wordsAround(&line).first + (4096 + 128) / 8;
    for (int i = 0; context->rank == 0 && i < 4 * 2; i++) {
      counts[i * 128 / 8] = 100;
    }
    both.arrive_and_wait();
    BarrierOptions opts(context);
    opts.setTag(9);
    EXPECT_THAT([&] { barrier(opts); },
                ::testing::ThrowsMessage<IoException>(
                    ::testing::HasSubstr("were overwritten")));
  };
  const auto make = [] { return transport::shm::CreateDevice(); };
  spawnContexts(Mode::kThreads, make, 2, run);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
