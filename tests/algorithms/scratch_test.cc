#include "algorithms/scratch.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/fake_channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

TEST(ScratchPool, LongMemoryIsHardlyLongerThanNeededAndGoesWhenItIsOfNoUse) {
  constexpr size_t kLong = (size_t{9} << 20) + 1;
  testing_support::FakeWorld world(1);
  ScratchPool pool(world.channel(0));
  Scratch scratch = pool.take(kLong);
  EXPECT_GE(scratch.bytes(), kLong);
  EXPECT_LE(scratch.bytes(), kLong + kLong / 8);
  pool.give(std::move(scratch));
  scratch = pool.take(kLong / 2);
  EXPECT_GE(scratch.bytes(), kLong);  // the same
  pool.give(std::move(scratch));
  for (int i = 0; i < 40; i++) {  // as 20 calls that take two each
    scratch = pool.take(1000);
    EXPECT_LT(scratch.bytes(), kLong);
    pool.give(std::move(scratch));
  }
  EXPECT_LT(pool.take(kLong / 2).bytes(), kLong);
}

TEST(ScratchPool, LongMemoryGoesWhereLaterCallsNeedNone) {
  constexpr size_t kLong = (size_t{9} << 20) + 1;
  testing_support::FakeWorld world(1);
  ScratchPool pool(world.channel(0));
  pool.give(pool.take(kLong));
  for (int i = 0; i < 40; i++) {
    pool.give(pool.take(0));
  }
  EXPECT_LT(pool.take(kLong / 2).bytes(), kLong);
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
