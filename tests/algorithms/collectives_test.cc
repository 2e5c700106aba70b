// Every collective against an oracle, over a fake channel: sizes, counts,
// types, roots, in place and not.
#include "tests/support/collectives.h"

#include <gtest/gtest.h>

#include "tests/algorithms/worlds.h"

GLOO_NAMESPACE_BEGIN
namespace {

using testing_support::Call;
using testing_support::checkCollective;
using testing_support::ContextPtr;
using testing_support::ContextWorld;
using testing_support::kChecks;
using testing_support::Triple;

template <typename T>
void checkRoots(const ContextPtr& context, size_t which, Call call) {
  // All of them where there are few.
  const int step = context->size <= 5 ? 1 : context->size / 3;
  for (int root = 0; root < context->size; root += step) {
    call.root = root;
    call.seed++;
    for (const bool inPlace : {false, true}) {
      call.inPlace = inPlace;
      ASSERT_EQ("", checkCollective<T>(which, context, call))
          << context->size << " ranks, count " << call.count << ", root "
          << root << (inPlace ? ", in place" : "");
    }
  }
}

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, GiveWhatTheOracleSays) {
  ContextWorld world(GetParam());
  world.run([](const ContextPtr& context) {
    for (size_t which = 0; which < kChecks; which++) {
      for (const size_t count : {0, 1, 3, 37}) {
        const Call call{count, 0, false, 0, static_cast<unsigned>(which)};
        checkRoots<float>(context, which, call);
        checkRoots<int8_t>(context, which, call);
        checkRoots<Triple>(context, which, call);
      }
      const Call call{5, 0, false, 1, static_cast<unsigned>(which)};
      checkRoots<double>(context, which, call);
      checkRoots<uint64_t>(context, which, call);
      checkRoots<float16>(context, which, call);
      checkRoots<bfloat16>(context, which, call);
    }
  });
  EXPECT_EQ(0u, world.world().pending());
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         testing::Values(1, 2, 3, 4, 5, 7, 8, 13, 16));

// Longer than several segments of any collective.
TEST(Collectives, OfLongVectors) {
  for (const int size : {2, 3, 4}) {
    ContextWorld world(size);
    world.run([](const ContextPtr& context) {
      for (size_t which = 0; which < kChecks; which++) {
        for (const bool inPlace : {false, true}) {
          const Call call{70001, 1, inPlace, 0, 3};
          ASSERT_EQ("", checkCollective<uint64_t>(which, context, call));
        }
      }
    });
  }
}

}  // namespace
GLOO_NAMESPACE_END
