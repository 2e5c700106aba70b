// Plans that are checked out by calls, found again, and evicted.
#include <gtest/gtest.h>

#include <vector>

#include "gloo/common/error.h"
#include "gloo/types.h"
#include "tests/algorithms/ranks.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

TEST(State, ConcurrentCallsNeedDistinctTags) {
  Ranks ranks(2);
  const Request request = sumRequest("ring", 10);
  State& state = ranks.state(0);
  const uint64_t slot = Slot::build(kAllreduceSlotPrefix, 3);
  const Lease lease = state.checkOut(request, slot);
  EXPECT_THROW(state.checkOut(request, slot), InvalidOperationException);
  // A tag is one operation's, whichever collective it is.
  EXPECT_THROW(state.checkOut(request, Slot::build(kBarrierSlotPrefix, 3)),
               InvalidOperationException);
  const Lease other =
      state.checkOut(request, Slot::build(kAllreduceSlotPrefix, 4));
  EXPECT_NE(&lease.plan(), &other.plan());
}

TEST(State, PlansAreFoundAgainAndBounded) {
  Ranks ranks(2);
  State& state = ranks.state(0);
  const Request request = sumRequest("ring", 10);
  const Plan* first = &state.checkOut(request, 1).plan();
  EXPECT_EQ(first, &state.checkOut(request, 2).plan());
  for (size_t count = 100; count < 400; count++) {
    state.checkOut(sumRequest("ring", count), 1);
  }
  EXPECT_EQ(10u, state.checkOut(request, 1).plan().program().sendBytes / 8);
}

// Lists of counts are often others with each call.
TEST(State, ListsOfCountsLeaveRoomForOtherPlans) {
  Ranks ranks(2);
  State& state = ranks.state(0);
  std::vector<const Plan*> plans;
  for (size_t count = 1; count <= 60; count++) {
    plans.push_back(&state.checkOut(sumRequest("ring", count), 1).plan());
  }
  const auto listed = [&](size_t count) {
    const size_t offsets[] = {0, count, count + 1};
    Request request;
    request.collective = Collective::kAllgatherv;
    request.counts.recvOffsets = offsets;
    return &state.checkOut(request, 1).plan();
  };
  for (size_t count = 1; count <= 300; count++) {
    listed(count);
  }
  const Plan* const last = listed(300);
  for (size_t count = 1; count <= plans.size(); count++) {
    EXPECT_EQ(plans[count - 1],
              &state.checkOut(sumRequest("ring", count), 1).plan());
  }
  EXPECT_EQ(last, listed(300));
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
