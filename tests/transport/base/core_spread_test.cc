// Threads that are moved to the core where their rank belongs.
#include "transport/base/core_spread.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <vector>

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

std::vector<int> cores() {
  const cpu_set_t set = allowed();
  std::vector<int> all;
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (CPU_ISSET(core, &set)) {
      all.push_back(core);
    }
  }
  return all;
}

// The calling thread goes on there, and may leave.
void startOn(int core) {
  const cpu_set_t before = allowed();
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  ASSERT_EQ(sched_setaffinity(0, sizeof(only), &only), 0);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

// Where a thread on core `from` is after a look. The kernel may move it, too:
// so the most frequent answer.
int coreAfterLook(int index, int ranks, int from) {
  std::vector<int> seen(CPU_SETSIZE, 0);
  for (int i = 0; i < 11; i++) {
    CoreSpread spread;
    spread.setRanks(index, ranks);
    startOn(from);
    spread.look();
    seen[static_cast<size_t>(sched_getcpu())]++;
  }
  return static_cast<int>(std::max_element(seen.begin(), seen.end()) -
                          seen.begin());
}

TEST(CoreSpreadTest, RanksGoToTheirCores) {
  const std::vector<int> all = cores();
  const int ranks = 2 * static_cast<int>(all.size());
  for (const int index : {0, 1, ranks / 2, ranks - 1}) {
    for (const int from : {all.front(), all.back()}) {
      EXPECT_EQ(coreAfterLook(index, ranks, from),
                all[static_cast<size_t>(index / 2)])
          << index << " from " << from;
    }
  }
}

TEST(CoreSpreadTest, AThreadMayRunWhereItMightBefore) {
  const cpu_set_t before = allowed();
  CoreSpread spread;
  spread.setRanks(1, 2);
  startOn(cores().front());
  spread.look();
  const cpu_set_t after = allowed();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(CoreSpreadTest, WhoIsNotAmongRanksStays) {
  CoreSpread spread;
  EXPECT_FALSE(spread.look());
}

TEST(CoreSpreadTest, LooksAreRare) {
  CoreSpread spread;
  spread.setRanks(0, 2);
  int times = 0;
  const auto begin = CoreSpread::Clock::now();
  do {
    times += spread.look() ? 1 : 0;
  } while (CoreSpread::Clock::now() - begin < std::chrono::milliseconds(500));
  EXPECT_GE(times, 1);
  EXPECT_LE(times, 9);  // after 0, 1, 3, 7 ... 255 ms
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
