#include "algorithms/scratch.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/fake_channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

class ScratchPoolTest : public testing::Test {
 protected:
  static constexpr size_t kLong = (size_t{9} << 20) + 1;

  Scratch make(size_t bytes) { return makeScratch(world_.channel(0), bytes); }
  // As the library does.
  Scratch take(size_t bytes) {
    Scratch stale;
    Scratch scratch = pool_.take(bytes, stale);
    return scratch.bytes() >= bytes ? std::move(scratch) : make(bytes);
  }

  testing_support::FakeWorld world_{1};
  ScratchPool pool_;
};

TEST_F(ScratchPoolTest,
       LongMemoryIsHardlyLongerThanNeededAndGoesWhenItIsOfNoUse) {
  Scratch scratch = take(kLong);
  EXPECT_GE(scratch.bytes(), kLong);
  EXPECT_LE(scratch.bytes(), kLong + kLong / 8);
  pool_.give(std::move(scratch));
  scratch = take(kLong / 2);
  EXPECT_GE(scratch.bytes(), kLong);  // the same
  pool_.give(std::move(scratch));
  for (int i = 0; i < 40; i++) {  // as 20 calls that take two each
    scratch = take(1000);
    EXPECT_LT(scratch.bytes(), kLong);
    pool_.give(std::move(scratch));
  }
  EXPECT_LT(take(kLong / 2).bytes(), kLong);
}

TEST_F(ScratchPoolTest, LongMemoryGoesWhereLaterCallsNeedNone) {
  pool_.give(take(kLong));
  for (int i = 0; i < 40; i++) {
    pool_.give(take(0));
  }
  EXPECT_LT(take(kLong / 2).bytes(), kLong);
}

// It may be unmapped where nobody waits.
TEST_F(ScratchPoolTest, WhatGoesIsHandedOut) {
  pool_.give(take(kLong));
  Scratch stale;
  for (int i = 0; stale.bytes() == 0 && i < 40; i++) {
    pool_.take(0, stale);
  }
  EXPECT_GE(stale.bytes(), kLong);
  for (int i = 0; i < 16; i++) {
    EXPECT_EQ(0u, pool_.give(make(8192)).bytes());
  }
  EXPECT_EQ(4096u, pool_.give(make(1)).bytes());
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
