// Ranks that have finished leave while others still work: nobody sees an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "gloo/common/string.h"
#include "tests/multiprocess/job.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

enum class End { kDestroy, kExit };

void runOnce(uint64_t seed, End end) {
  SCOPED_TRACE(MakeString("seed ", seed));
  std::mt19937_64 random(seed);
  const int first = static_cast<int>(random() % 3);
  const size_t bytes = random() % 4 == 0 ? 100000 : 64;
  Job job(Job::Options{},
          [&](Child& child, const std::shared_ptr<Context>& context) {
            lastOperations(*context, first, bytes);
            if (end == End::kExit) {
              // The context is never destroyed.
              static std::shared_ptr<Context> kept;
              kept = context;
              child.say("0 0 none");
              std::exit(::testing::Test::HasFailure() ? 1 : 0);
            }
          });
  job.go();
  for (int rank = 0; rank < 3; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(20));
    EXPECT_EQ(failure.type, "none") << "rank " << rank << failure.text;
  }
  job.group().joinAll(std::chrono::seconds(20));
}

class LeavingTest : public ::testing::TestWithParam<int> {};

// Fewer where all takes longer.
int runs() { return std::max(10, 125 * slowness() / patience()); }

TEST_P(LeavingTest, AfterDestroyingTheContext) {
  for (int i = 0; i < runs() && !HasFailure(); i++) {
    runOnce(static_cast<uint64_t>(GetParam() * runs() + i), End::kDestroy);
  }
}

TEST_P(LeavingTest, ByExitWithoutDestroyingIt) {
  for (int i = 0; i < runs() && !HasFailure(); i++) {
    runOnce(static_cast<uint64_t>(GetParam() * runs() + i), End::kExit);
  }
}

// 1000 runs in all, or fewer.
INSTANTIATE_TEST_SUITE_P(, LeavingTest, ::testing::Range(0, 4));

// What the parent would do at its exit is nothing of theirs.
TEST(LeavingChildrenTest, WhereTheirParentHasHadAContext) {
  chosenTransport().make()->createContext(0, 2);
  for (uint64_t seed = 0; seed < 3; seed++) {
    runOnce(seed, End::kExit);
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
