// What the kernel refuses a thread, and those that it starts, from now on: as
// filters of containers do, old kernels, and limits at a moment of the test's
// choice. For processes of their own: nothing takes it back.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// The lower half of an argument of the call, compared: BPF_JEQ, BPF_JGE, or
// BPF_JSET for bits of which one is set.
struct RefusedIf {
  int argument;
  uint16_t comparison;
  uint32_t value;
};

enum class Refused : uint8_t {
  kThisThread,
  kAllThreads,  // those, too, that this process has already
};

// Where all of `when` hold. `answer`: SECCOMP_RET_KILL_PROCESS, or
// SECCOMP_RET_ERRNO | errno.
inline void refuseCall(long number, uint32_t answer,
                       const std::vector<RefusedIf>& when = {},
                       Refused whom = Refused::kThisThread) {
  std::vector<sock_filter> filter;
  const auto goOnIf = [&](uint32_t at, uint16_t comparison, uint32_t value) {
    filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at));
    filter.push_back(BPF_JUMP(
        static_cast<uint16_t>(BPF_JMP | BPF_K | comparison), value, 1, 0));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  };
  goOnIf(offsetof(seccomp_data, nr), BPF_JEQ, static_cast<uint32_t>(number));
  for (const RefusedIf& each : when) {
    const size_t at =
        offsetof(seccomp_data, args) + 8 * static_cast<size_t>(each.argument);
    goOnIf(static_cast<uint32_t>(at), each.comparison, each.value);
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
  const sock_fprog program{static_cast<uint16_t>(filter.size()), filter.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  const unsigned flags =
      whom == Refused::kAllThreads ? SECCOMP_FILTER_FLAG_TSYNC : 0;
  ASSERT_EQ(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program),
            0);
}

}  // namespace test
GLOO_NAMESPACE_END
