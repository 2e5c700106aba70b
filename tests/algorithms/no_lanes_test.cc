// Where one rank has no room for memory that all have mapped, none has it: the
// links do instead, on all ranks, and nothing is left of what was made.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <string>

#include "gloo/rendezvous/context.h"
#include "gloo/transport/shm/device.h"
#include "tests/algorithms/lanes.h"
#include "tests/support/collectives.h"
#include "tests/support/refuse_calls.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

// More than the segment of a link has, and less than lanes.
constexpr uint32_t kMost = 1 << 20;

size_t longestSharedMapping() {
  std::ifstream maps("/proc/self/maps");
  size_t longest = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:gloo") != std::string::npos) {
      size_t end = 0;
      const size_t begin = std::stoull(line, &end, 16);
      longest = std::max(longest, static_cast<size_t>(std::stoull(
                                      line.substr(end + 1), nullptr, 16)) -
                                      begin);
    }
  }
  return longest;
}

void checkWithout(int refused, const std::function<void()>& refuse) {
  spawnSeats(Mode::kProcesses, 3, [&](const Seat& seat) {
    if (seat.rank == refused) {
      refuse();
    }
    auto device = transport::shm::CreateDevice();
    const auto context =
        std::make_shared<rendezvous::Context>(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    context->connectFullMesh(seat.store, device);
    EXPECT_EQ(internal::Channel::of(Inside::transport(*context)).direct(),
              nullptr);
    EXPECT_LE(longestSharedMapping(), kMost);
    for (size_t which = 0; which < testing_support::kChecks; which++) {
      const testing_support::Call call{1000, 0, false, 0, 1};
      ASSERT_EQ("",
                testing_support::checkCollective<int>(which, context, call));
    }
  });
}

TEST(NoLanesTest, WhereTheFirstRankCannotMakeThem) {
  checkWithout(0, [] {
    const rlimit small{kMost, kMost};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  });
}

// As at its limits of address space and of mappings.
TEST(NoLanesTest, WhereAnotherOneCannotMapThem) {
  checkWithout(1, [] {
    constexpr int kLength = 1;
    constexpr int kFlags = 3;
    refuseCall(SYS_mmap, SECCOMP_RET_ERRNO | ENOMEM,
               {{kLength, BPF_JGE, kMost}, {kFlags, BPF_JSET, MAP_SHARED}});
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
