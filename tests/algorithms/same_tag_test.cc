// Two calls with one tag that begin at the same moment on one rank, one in a
// lane and one over the links: exactly one is refused.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <thread>

#include "gloo/allreduce.h"
#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/math.h"
#include "gloo/transport/shm/device.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using ContextPtr = std::shared_ptr<Context>;

constexpr int kRounds = 3000;
constexpr uint32_t kTag = 7;
enum Which : int { kNone = -1, kAllreduce = 0, kGather = 1 };

void call(const ContextPtr& context, int which) {
  if (which == kAllreduce) {
    int own = 1;
    AllreduceOptions opts(context);
    opts.setOutput(&own, 1);
    opts.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(
            &sum<int>));
    opts.setTag(kTag);
    allreduce(opts);
    EXPECT_EQ(2, own);
    return;
  }
  const auto all = gatherOnes(context, kTag);
  EXPECT_EQ(context->rank == 0 ? 2 : 0, all[0] + all[1]);
}

// Rank 0 waits in either call until rank 1 makes it too, which it does when it
// hears which one was refused.
TEST(SameTagTest, OfTwoCallsAtTheSameMomentOneIsRefused) {
  std::array<std::atomic<int>, kRounds> refused;
  for (auto& which : refused) {
    which = kNone;
  }
  std::atomic<int> others{0};  // refused as well
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
      [&](const ContextPtr& context) {
        barrier(BarrierOptions(context));
        if (context->rank == 1) {
          for (auto& which : refused) {
            which.wait(kNone);
            call(context, 1 - which);
          }
          return;
        }
        std::barrier begin(2);
        const auto run = [&](int which) {
          for (auto& round : refused) {
            begin.arrive_and_wait();
            try {
              call(context, which);
            } catch (const InvalidOperationException&) {
              int none = kNone;
              if (!round.compare_exchange_strong(none, which)) {
                others++;
              }
              round.notify_all();
            }
          }
        };
        std::thread thread([&] { run(kGather); });
        run(kAllreduce);
        thread.join();
      });
  EXPECT_EQ(0, others);
}

// Its gather with the same tag is over the links meanwhile. Lanes are used as
// before afterwards: the call that was refused does not count.
TEST(SameTagTest, WhoFoundNoLaneAndIsRefusedWasNotOverTheLinks) {
  std::barrier both(2);
  spawnContexts(
      Mode::kThreads, [] { return transport::shm::CreateDevice(); }, 2,
      [&](const ContextPtr& context) {
        {
          const AllLanes all(context, 100);
          both.arrive_and_wait();
          if (context->rank == 0) {
            // One is under way once the other one has been refused.
            std::atomic<int> refused{0};
            const auto gatherOrNot = [&] {
              try {
                call(context, kGather);
              } catch (const InvalidOperationException&) {
                refused++;
                refused.notify_all();
              }
            };
            std::thread one(gatherOrNot);
            std::thread other(gatherOrNot);
            refused.wait(0);
            EXPECT_THROW(call(context, kAllreduce), InvalidOperationException);
            both.arrive_and_wait();
            one.join();
            other.join();
            EXPECT_EQ(1, refused);
          } else {
            both.arrive_and_wait();
            call(context, kGather);
          }
          both.arrive_and_wait();
        }
        both.arrive_and_wait();
        laneOf(context, kAllreduceSlotPrefix, kTag);
      });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
