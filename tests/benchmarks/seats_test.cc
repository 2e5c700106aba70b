#include "benchmarks/benchmark/seats.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace benchmark {
namespace {

TEST(Seats, NoneHasMoreThanOneRankMoreThanAnother) {
  for (size_t ranks = 1; ranks <= 17; ranks++) {
    for (size_t seats = 1; seats <= ranks; seats++) {
      for (size_t round = 0; round < 40; round++) {
        const auto taken = seatsOf(3, round, ranks, seats);
        ASSERT_EQ(ranks, taken.size());
        std::map<size_t, size_t> ranksOn;
        for (const size_t seat : taken) {
          ASSERT_LT(seat, seats);
          ranksOn[seat]++;
        }
        ASSERT_EQ(seats, ranksOn.size());
        const auto [least, most] = std::minmax_element(
            ranksOn.begin(), ranksOn.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
        ASSERT_LE(most->second, least->second + 1);
      }
    }
  }
}

// In three rounds of 3 or 4 ranks on two processors each pair shares one once.
TEST(Seats, FewRanksMeetEquallyOften) {
  for (const size_t ranks : {3, 4}) {
    for (uint32_t draw = 0; draw < 20; draw++) {
      std::map<std::pair<size_t, size_t>, int> met;
      for (size_t round = 0; round < 9; round++) {
        const auto taken = seatsOf(draw, round, ranks, 2);
        for (size_t a = 0; a < ranks; a++) {
          for (size_t b = 0; b < a; b++) {
            met[{a, b}] += taken[a] == taken[b] ? 1 : 0;
          }
        }
      }
      for (const auto& [pair, times] : met) {
        EXPECT_EQ(3, times) << pair.first << " and " << pair.second;
      }
    }
  }
}

TEST(Seats, DrawsDiffer) {
  std::set<std::vector<size_t>> first;
  for (uint32_t draw = 0; draw < 20; draw++) {
    first.insert(seatsOf(draw, 0, 8, 2));
  }
  EXPECT_LT(5u, first.size());
}

// Whoever counts processors afterwards counts all.
TEST(Seats, TheSystemMayMoveARankOn) {
  cpu_set_t before, after;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof(before), &before));
  takeSeat(0, 0, 0, CPU_SETSIZE + 1);
  ASSERT_EQ(0, sched_getaffinity(0, sizeof(after), &after));
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace benchmark
