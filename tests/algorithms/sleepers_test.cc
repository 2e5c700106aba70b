// Who sleeps in a lane is woken, whether or not the kernel makes the barriers
// that publishing there relies on (transport/base/bell.h).
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>

#include "gloo/barrier.h"
#include "gloo/common/error.h"
#include "gloo/internal/cores.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/shm/device.h"
#include "tests/support/process_group.h"
#include "tests/support/refuse_calls.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"
#include "transport/base/bell.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;

// The ranks keep each other waiting by turns, for much longer than they spin.
constexpr int kTurns = 40;
constexpr milliseconds kDelay{2};

enum class When : uint8_t { kNever, kBeforeConnecting, kAfterConnecting };

// A rank that was not woken sleeps for a second.
void keepEachOtherWaiting(const std::shared_ptr<Context>& context) {
  BarrierOptions opts(context);
  barrier(opts);
  const auto since = now();
  for (int turn = 0; turn < kTurns; turn++) {
    if (turn % 2 == context->rank) {
      std::this_thread::sleep_for(kDelay);
    }
    barrier(opts);
  }
  EXPECT_LT(now() - since, std::chrono::seconds(1) * slowness());
}

// How rank 1 ends, where membarrier is `answer` for it from then on.
Outcome endOfSleeper(When when, uint32_t answer,
                     When refusedTo0 = When::kNever) {
  const ScratchDirectory directory;
  ProcessGroup ranks(2, [&](Child& child) {
    ::unsetenv("GLOO_SPIN_US");
    const auto refuse = [&](When moment) {
      if (child.rank == 1 && moment == when) {
        refuseCall(SYS_membarrier, answer, {}, Refused::kAllThreads);
      }
      if (child.rank == 0 && moment == refusedTo0) {
        refuseCall(SYS_membarrier, SECCOMP_RET_ERRNO | EPERM);
      }
    };
    refuse(When::kBeforeConnecting);
    auto context = std::make_shared<rendezvous::Context>(child.rank, 2);
    context->setTimeout(contextTimeout());
    rendezvous::FileStore store(directory.path());
    auto device = transport::shm::CreateDevice();
    context->connectFullMesh(store, device);
    refuse(When::kAfterConnecting);
    try {
      keepEachOtherWaiting(context);
    } catch (const IoException&) {  // the other rank has ended
      EXPECT_EQ(child.rank, 0);
    }
  });
  const Outcome outcome = ranks.join(1, std::chrono::seconds(60));
  ranks.joinAll();
  return outcome;
}

TEST(SleepersTest, AreWokenWithBarriers) {
  const Outcome outcome = endOfSleeper(When::kNever, 0);
  EXPECT_TRUE(outcome.exitedWith(0)) << outcome.str();
}

TEST(SleepersTest, MakeBarriersWhereEachHasACore) {
  const bool made = internal::usableCores() >= 2 &&
                    transport::base::SleepersBarrier::supported();
  const Outcome outcome =
      endOfSleeper(When::kAfterConnecting, SECCOMP_RET_KILL_PROCESS);
  EXPECT_TRUE(made ? outcome.killedBy(SIGSYS) : outcome.exitedWith(0))
      << outcome.str();
}

TEST(SleepersTest, AreWokenWhereBarriersAreRefused) {
  const uint32_t refused = SECCOMP_RET_ERRNO | EPERM;
  for (const When when : {When::kBeforeConnecting, When::kAfterConnecting}) {
    const Outcome outcome = endOfSleeper(when, refused);
    EXPECT_TRUE(outcome.exitedWith(0)) << outcome.str();
  }
}

TEST(SleepersTest, MakeNoneWhereTheOtherRankCannot) {
  const Outcome outcome =
      endOfSleeper(When::kAfterConnecting, SECCOMP_RET_KILL_PROCESS,
                   When::kBeforeConnecting);
  EXPECT_TRUE(outcome.exitedWith(0)) << outcome.str();
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
