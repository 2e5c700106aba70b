// What is made once in a process does not stop a child forked meanwhile.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "gloo/internal/cores.h"
#include "gloo/internal/fork.h"
#include "tests/support/forked_child.h"
#include "tests/support/refuse_calls.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::atomic<int> makers{0};
std::atomic<bool> goOn{false};

// The first maker takes its time.
const int& value() {
  return internal::madeOnce([] {
    const int maker = makers++;
    while (maker == 0 && !goOn) {
      std::this_thread::yield();
    }
    return maker;
  });
}

TEST(MadeOnceTest, WhileAThreadMakesItOthersAndAChildGoOn) {
  const int* ofThread = nullptr;
  std::thread slow([&] { ofThread = &value(); });
  while (makers == 0) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(
      holdsInChild([] { return value() == 1 && &value() == &value(); }));
  const int* const ours = &value();
  goOn = true;
  slow.join();
  EXPECT_EQ(*ours, 1);
  EXPECT_EQ(ofThread, ours);
  EXPECT_TRUE(holdsInChild([&] { return &value() == ours; }));
  EXPECT_EQ(makers, 2);
}

std::atomic<int> stopped{0};

// The thread stands still where it opens the first file. (Nobody has asked for
// the quotas before.)
TEST(MadeOnceTest, WhileAThreadReadsTheQuotasAChildHasThem) {
  EXPECT_TRUE(holdsInChild([] {
    std::signal(SIGSYS, [](int) {
      for (stopped = 1; !goOn;) {
        sched_yield();
      }
    });
    goOn = false;
    std::thread slow([] {
      refuseCall(SYS_openat, SECCOMP_RET_TRAP);
      internal::ownCoreQuotas();
      stopped = 2;
    });
    while (stopped == 0) {
      std::this_thread::yield();
    }
    const bool holds = stopped == 1 && holdsInChild([] {
                         return internal::ownCoreQuotas().size() ==
                                internal::coreQuotas().size();
                       });
    goOn = true;
    slow.join();
    return holds;
  }));
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
