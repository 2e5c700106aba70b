// A context fails while memory is short: everybody hears of it all the same.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class FailingTest : public ::testing::TestWithParam<FakeShape> {};

TEST_P(FailingTest, ALinkWithoutMemoryForItsLastFrameEnds) {
  FakeOptions options;
  options.shape = GetParam();
  spawn(Mode::kThreads, fakeDevices(options), 3,
        [&](const ContextPtr& context) {
          meet(context);
          char byte = 0;
          auto buffer = context->createUnboundBuffer(&byte, 1);
          const int next = (context->rank + 1) % 3;
          buffer->recv(next, 99);
          if (context->rank == 0) {
            options.watch->withoutMemory = 2;
            EXPECT_THROW(buffer->waitRecv(std::chrono::milliseconds(10)),
                         TimeoutException);
            EXPECT_EQ(options.watch->withoutMemory, 0);
          } else {
            EXPECT_THROW(buffer->waitRecv(), IoException);
          }
        });
}

INSTANTIATE_TEST_SUITE_P(, FailingTest,
                         ::testing::Values(FakeShape::kStream,
                                           FakeShape::kPull),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
