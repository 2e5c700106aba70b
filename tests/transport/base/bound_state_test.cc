// What is kept of bound buffers does not grow with their number.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"
#include "transport/base/pair.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class BoundStateTest : public ::testing::TestWithParam<FakeShape> {
 protected:
  void run(const TransportFunction& fn) const {
    FakeOptions options;
    options.shape = GetParam();
    spawn(Mode::kThreads, fakeDevices(options), 2, fn);
  }
};

size_t keptOf(const ContextPtr& context) {
  auto& base = dynamic_cast<transport::base::Context&>(*context);
  auto& pair =
      dynamic_cast<transport::base::Pair&>(*context->getPair(1 - base.rank()));
  const auto lock = base.lock();
  return pair.boundsKept();
}

// As an object of an older algorithm for each step of a training makes them.
TEST_P(BoundStateTest, IsThatOfTheBuffersThatThereAre) {
  run([](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    for (int slot = 0; slot < 3000; slot++) {
      int out = 2 * slot + context->rank;
      int in = -1;
      auto send = pair.createSendBuffer(slot, &out, sizeof(out));
      auto recv = pair.createRecvBuffer(slot, &in, sizeof(in));
      send->send();
      recv->waitRecv();
      send->waitSend();
      ASSERT_EQ(in, 2 * slot + 1 - context->rank);
      // The peer may be a round ahead.
      ASSERT_LE(keptOf(context), 4u) << slot;
    }
    meet(context);
    EXPECT_LE(keptOf(context), 1u);
  });
}

// An index that is used again is not the old buffer's: what was sent to that
// one is not told of the new one, on another slot.
TEST_P(BoundStateTest, AnIndexUsedAgainIsTheNewBuffers) {
  run([](const ContextPtr& context) {
    constexpr int kRounds = 200;
    auto& pair = *context->getPair(1 - context->rank);
    for (int slot = 0; slot < kRounds; slot++) {
      if (context->rank == 0) {
        auto bytes = pattern(slot, 3000);
        auto send = pair.createSendBuffer(slot, bytes.data(), bytes.size());
        for (int i = 0; i < 3; i++) {
          send->send();
        }
        awaitSignal(context, 1);
        auto last = pattern(kRounds, 100);
        auto next =
            pair.createSendBuffer(slot + kRounds, last.data(), last.size());
        next->send();
        next->waitSend();
        meet(context);
        continue;
      }
      std::vector<char> bytes(3000);
      auto first = pair.createRecvBuffer(slot, bytes.data(), bytes.size());
      first->waitRecv();
      first.reset();  // with two writes on their way, or waiting
      std::fill(bytes.begin(), bytes.end(), 'c');
      auto next = pair.createRecvBuffer(slot + kRounds, bytes.data(), 100);
      signal(context, 0);
      next->waitRecv();
      EXPECT_EQ(mismatch(kRounds, bytes.data(), 100), 100u) << slot;
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c') -
                    std::count(bytes.begin(), bytes.begin() + 100, 'c'),
                2900);
      // Those that no buffer was there for go to this one.
      auto drain = pair.createRecvBuffer(slot, bytes.data(), bytes.size());
      meet(context);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, BoundStateTest,
                         ::testing::Values(FakeShape::kStream, FakeShape::kPush,
                                           FakeShape::kPull, FakeShape::kMixed),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
