// Calls for pairs that are connected at their first use, and what may come of
// them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

FakeOptions lazyOptions() {
  FakeOptions options;
  options.lazy = true;
  return options;
}

TEST(LazyCallTest, WhoIsPutOffCallsAgain) {
  const FakeOptions options = lazyOptions();
  options.watch->putOff = 3;
  spawn(Mode::kThreads, fakeDevices(options), 2, meet);
  EXPECT_LT(options.watch->putOff, 0);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
