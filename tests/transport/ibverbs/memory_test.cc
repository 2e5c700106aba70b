// A poller that gets no memory.
#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <set>

#include "tests/support/fake_verbs/fake_verbs.h"
#include "tests/support/own_new.h"
#include "transport/ibverbs/poller.h"

namespace {
// So many more allocations of this thread succeed, no other one does.
thread_local size_t succeeding = SIZE_MAX;
}  // namespace

bool mayAllocate() {
  const bool may = succeeding > 0;
  succeeding -= may && succeeding != SIZE_MAX ? 1 : 0;
  return may;
}

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

// Empty: there was not enough memory.
std::optional<uint32_t> addWith(VerbsPoller& poller, size_t allocations) {
  std::optional<uint32_t> place;
  succeeding = allocations;
  try {
    place = poller.add();
  } catch (const std::bad_alloc&) {
  }
  succeeding = SIZE_MAX;
  return place;
}

TEST(PollerMemoryTest, APlaceThatCouldNotBeMadeIsNotGivenOut) {
  constexpr size_t kPlaces = 100;
  test::FakeVerbs fake;
  VerbsPoller poller{attr()};
  std::set<uint32_t> given;
  size_t refused = 0;
  while (given.size() < kPlaces) {
    for (const size_t allocations : {size_t{0}, size_t{1}, SIZE_MAX}) {
      if (const auto place = addWith(poller, allocations)) {
        EXPECT_TRUE(given.insert(*place).second) << *place << " twice";
      } else {
        refused++;
      }
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(*given.rbegin(), given.size() - 1) << "one is lost";
}

TEST(PollerMemoryTest, ToGiveAPlaceBackNeedsNoMemory) {
  constexpr uint32_t kPlaces = 100;
  test::FakeVerbs fake;
  VerbsPoller poller{attr()};
  for (uint32_t i = 0; i < kPlaces; i++) {
    EXPECT_EQ(poller.add(), i);
  }
  succeeding = 0;
  EXPECT_NO_THROW({
    for (uint32_t i = 0; i < kPlaces; i++) {
      poller.remove(i);
    }
  });
  succeeding = SIZE_MAX;
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
