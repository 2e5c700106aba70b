// What a thread posts moves, though the thread that polls for all sleeps, or
// nobody does, and the peer has nothing to say.
#include <chrono>
#include <thread>

#include "tests/support/process_group.h"
#include "tests/support/shared_flag.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr size_t kBytes = 64 << 20;  // more than any link takes at once
constexpr uint64_t kLong = 2;

class AsleepTest : public ContractTest {};

internal::Statistics statistics(const ContextPtr& context) {
  return dynamic_cast<transport::base::Context&>(*context)
      .device()
      .statistics();
}

// Until some thread sleeps in the kernel, or never does: it may poll for ever.
void untilOneSleeps(const ContextPtr& context, uint64_t before) {
  const auto until = Clock::now() + milliseconds(200);
  while (statistics(context).blockingWaits == before && Clock::now() < until) {
    std::this_thread::yield();
  }
}

void receiveLong(const ContextPtr& context) {
  Message message(context, kBytes);
  message.buffer->recv(0, kLong);
  signal(context, 0);
  EXPECT_TRUE(message.buffer->waitRecv());
  EXPECT_TRUE(message.holds(3));
}

TEST_P(AsleepTest, ASendWhileAnotherThreadWaits) {
  run(2, [](const ContextPtr& context) {
    context->setTimeout(std::chrono::seconds(5) * patience());
    if (context->rank == 1) {
      receiveLong(context);
      auto last = context->createUnboundBuffer(nullptr, 0);
      last->send(0, 1);
      EXPECT_TRUE(last->waitSend());
      return;
    }
    awaitSignal(context, 1);
    Message message(context, pattern(3, kBytes));
    const uint64_t before = statistics(context).blockingWaits;
    std::thread waiter([&] {
      auto last = context->createUnboundBuffer(nullptr, 0);
      last->recv(1, 1);
      EXPECT_TRUE(last->waitRecv());
    });
    untilOneSleeps(context, before);
    message.buffer->send(1, kLong);
    EXPECT_TRUE(message.buffer->waitSend());
    waiter.join();
  });
}

// The background thread, which sleeps too once nothing moves.
TEST_P(AsleepTest, ASendThatNobodyWaitsFor) {
  SharedFlag received;
  run(2, [&](const ContextPtr& context) {
    context->setTimeout(std::chrono::seconds(5) * patience());
    if (context->rank == 1) {
      receiveLong(context);
      received.set();
      return;
    }
    awaitSignal(context, 1);
    Message message(context, pattern(3, kBytes));
    const auto asleep = Clock::now() + milliseconds(100);
    while (Clock::now() < asleep) {
      std::this_thread::yield();
    }
    message.buffer->send(1, kLong);
    const auto until = Clock::now() + std::chrono::seconds(5) * patience();
    while (!received.isSet() && Clock::now() < until) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(received.isSet());
    EXPECT_TRUE(message.buffer->waitSend());
  });
}

GLOO_CONTRACT_SUITE(AsleepTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
