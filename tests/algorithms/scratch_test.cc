#include "algorithms/scratch.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/fake_channel.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// As the library does.
Scratch take(testing_support::FakeWorld& world, ScratchPool& pool,
             size_t bytes) {
  Scratch stale;
  Scratch scratch = pool.take(bytes, stale);
  return scratch.bytes() >= bytes ? std::move(scratch)
                                  : makeScratch(world.channel(0), bytes);
}

TEST(ScratchPool, LongMemoryIsHardlyLongerThanNeededAndGoesWhenItIsOfNoUse) {
  constexpr size_t kLong = (size_t{9} << 20) + 1;
  testing_support::FakeWorld world(1);
  ScratchPool pool;
  Scratch scratch = take(world, pool, kLong);
  EXPECT_GE(scratch.bytes(), kLong);
  EXPECT_LE(scratch.bytes(), kLong + kLong / 8);
  pool.give(std::move(scratch));
  scratch = take(world, pool, kLong / 2);
  EXPECT_GE(scratch.bytes(), kLong);  // the same
  pool.give(std::move(scratch));
  for (int i = 0; i < 40; i++) {  // as 20 calls that take two each
    scratch = take(world, pool, 1000);
    EXPECT_LT(scratch.bytes(), kLong);
    pool.give(std::move(scratch));
  }
  EXPECT_LT(take(world, pool, kLong / 2).bytes(), kLong);
}

TEST(ScratchPool, LongMemoryGoesWhereLaterCallsNeedNone) {
  constexpr size_t kLong = (size_t{9} << 20) + 1;
  testing_support::FakeWorld world(1);
  ScratchPool pool;
  pool.give(take(world, pool, kLong));
  for (int i = 0; i < 40; i++) {
    pool.give(take(world, pool, 0));
  }
  EXPECT_LT(take(world, pool, kLong / 2).bytes(), kLong);
}

// It may be unmapped where nobody waits.
TEST(ScratchPool, WhatGoesIsHandedOut) {
  constexpr size_t kLong = (size_t{9} << 20) + 1;
  testing_support::FakeWorld world(1);
  ScratchPool pool;
  pool.give(take(world, pool, kLong));
  Scratch stale;
  for (int i = 0; stale.bytes() == 0 && i < 40; i++) {
    pool.take(0, stale);
  }
  EXPECT_GE(stale.bytes(), kLong);
  for (int i = 0; i < 16; i++) {
    EXPECT_EQ(0u, pool.give(makeScratch(world.channel(0), 8192)).bytes());
  }
  EXPECT_EQ(4096u, pool.give(makeScratch(world.channel(0), 1)).bytes());
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
