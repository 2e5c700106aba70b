// A thread waits; another one starts the operation that the wait is for, and
// which is complete at once.
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process_group.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kSlot = 5;
constexpr uint64_t kNever = 6;

class WakingTest : public ContractTest {
 protected:
  using Step = std::function<void()>;

  void wakes(const ContextPtr& context, const Step& wait, const Step& start);
};

// With the waiter alone, and with another thread that polls for it.
void WakingTest::wakes(const ContextPtr& context, const Step& wait,
                       const Step& start) {
  for (const bool driven : {false, true}) {
    auto endless = context->createUnboundBuffer(nullptr, 0);
    std::thread driver;
    if (driven) {
      endless->recv(1, kNever);
      driver = std::thread([&] { EXPECT_FALSE(endless->waitRecv()); });
      std::this_thread::sleep_for(milliseconds(20));
    }
    std::atomic<bool> over{false};
    std::thread waiter([&] {
      wait();
      over = true;
    });
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_FALSE(over);
    start();
    const auto until = Clock::now() + std::chrono::seconds(4) * patience();
    while (!over && Clock::now() < until) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(over) << (driven ? "beside a driver" : "alone");
    waiter.join();
    if (driven) {
      endless->abortWaitRecv();
      driver.join();
    }
  }
}

// Rank 1 sends before rank 0 begins.
TEST_P(WakingTest, AReceiveOfWhatHasArrived) {
  run(3, [this](const ContextPtr& context) {
    context->setTimeout(std::chrono::seconds(8) * patience());
    Message message(context, 100);
    if (context->rank == 2) {
      awaitSignal(context, 0);
      return;
    }
    if (context->rank == 1) {
      for (int i = 0; i < 4; i++) {
        message.buffer->send(0, kSlot);
        EXPECT_TRUE(message.buffer->waitSend());
      }
      signal(context, 0);
      awaitSignal(context, 0);
      return;
    }
    awaitSignal(context, 1);
    const Step wait = [&] { EXPECT_TRUE(message.buffer->waitRecv()); };
    wakes(context, wait, [&] { message.buffer->recv(1, kSlot); });
    wakes(context, wait, [&] {
      message.buffer->recv(std::vector<int>{1, 2}, kSlot);
    });
    signal(context, 1);
    signal(context, 2);
  });
}

TEST_P(WakingTest, ASendThatLeavesAtOnce) {
  run(2, [this](const ContextPtr& context) {
    context->setTimeout(std::chrono::seconds(8) * patience());
    std::vector<char> bytes(8);
    auto& pair = *context->getPair(1 - context->rank);
    if (context->rank == 1) {
      const auto bound = pair.createRecvBuffer(3, bytes.data(), bytes.size());
      signal(context, 0);
      Message message(context, 100);
      for (int i = 0; i < 2; i++) {
        message.buffer->recv(0, kSlot);
        EXPECT_TRUE(message.buffer->waitRecv());
        bound->waitRecv();
      }
      awaitSignal(context, 0);
      return;
    }
    awaitSignal(context, 1);
    Message message(context, 100);
    wakes(
        context, [&] { EXPECT_TRUE(message.buffer->waitSend()); },
        [&] { message.buffer->send(1, kSlot); });
    const auto bound = pair.createSendBuffer(3, bytes.data(), bytes.size());
    wakes(
        context, [&] { bound->waitSend(); }, [&] { bound->send(); });
    signal(context, 1);
  });
}

// That this rank closes itself.
TEST_P(WakingTest, TheEndOfAPair) {
  run(2, [](const ContextPtr& context) {
    context->setTimeout(std::chrono::seconds(8) * patience());
    std::vector<char> bytes(8);
    meet(context);
    if (context->rank == 1) {
      while (context->getPair(0)->isConnected()) {
        std::this_thread::yield();
      }
      return;
    }
    auto& pair = *context->getPair(1);
    const auto bound = pair.createRecvBuffer(3, bytes.data(), bytes.size());
    std::string why;
    std::thread waiter([&] {
      try {
        bound->waitRecv();
      } catch (const IoException& e) {
        why = e.what();
      }
    });
    std::this_thread::sleep_for(milliseconds(50));
    pair.close();
    waiter.join();
    EXPECT_NE(why.find("rank 0 closed its pair with rank 1"), std::string::npos)
        << why;
  });
}

GLOO_CONTRACT_SUITE(WakingTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
