#include "transport/base/dozing.h"

#include <gtest/gtest.h>

#include <utility>

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

TEST(DozingTest, BecomesLongerUntilThereIsSomethingToDo) {
  Dozing dozing;
  const auto brief = dozing.length();
  int dozes = 0;
  for (; !dozing.isLong(); dozes++) {
    EXPECT_EQ(dozing.length(), brief);
    dozing.took(std::chrono::microseconds(5));
  }
  EXPECT_GT(dozes, 1);
  EXPECT_EQ(dozing.length(), 4 * brief);
  dozing.beBrief();
  EXPECT_EQ(dozing.length(), brief);
}

// The least that one has cost counts: of others something was done besides.
TEST(DozingTest, LooksThatCostMuchBecomeRarer) {
  for (const auto& [cost, times] : {std::pair(40, 5), std::pair(5000, 16)}) {
    Dozing dozing;
    const auto brief = dozing.length();
    for (int i = 0; !dozing.isLong(); i++) {
      dozing.took(std::chrono::microseconds(i == 3 ? cost : 100 * cost));
    }
    EXPECT_EQ(dozing.length(), times * 4 * brief);
  }
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
