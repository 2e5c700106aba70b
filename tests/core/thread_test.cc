// Threads of the library's own.
#include "gloo/internal/thread.h"

#include <gtest/gtest.h>

#include <csignal>

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

sigset_t mask() {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return now;
}

// A program that blocks one to wait for it later must get it itself.
TEST(OwnThread, LeavesSignalsToTheProgramsThreads) {
  const sigset_t before = mask();
  sigset_t its;
  internal::startThread([&] { its = mask(); }).join();
  const sigset_t ours = mask();
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) {
    EXPECT_EQ(sigismember(&its, signal), 1) << signal;
    EXPECT_EQ(sigismember(&ours, signal), sigismember(&before, signal))
        << signal;
  }
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
    EXPECT_EQ(sigismember(&its, fault), 0) << fault;
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
