// Operations that end early: when memory is the caller's again, and how long
// that may take.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>

#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;

transport::base::Context& inside(const ContextPtr& context) {
  return dynamic_cast<transport::base::Context&>(*context);
}

class TakingBackTest : public ::testing::TestWithParam<FakeShape> {
 protected:
  void run(int size, const TransportFunction& fn) const {
    FakeOptions options;
    options.shape = GetParam();
    spawn(Mode::kThreads, fakeDevices(options), size, fn);
  }
  // Not over the transport.
  void meetOutside() { outside_.arrive_and_wait(); }

  using Step = std::function<void(const ContextPtr&, BufferPtr&)>;
  void readSlowlyWhile(const Step& end, bool lives);

 private:
  std::barrier<> outside_{2};
};

// Rank 1 has leave to write, and answers nothing for a while.
TEST_P(TakingBackTest, AnAbortedWaitEndsWhenThePeerHasLetGo) {
  std::atomic<bool> answers{false};
  std::atomic<bool> over{false};
  run(2, [&](const ContextPtr& context) {
    if (context->rank == 1) {
      awaitSignal(context, 0);
      {
        const auto lock = inside(context).lock();
        meetOutside();
        // Nothing tells that a wait goes on.
        for (int i = 0; i < 10 && !over; i++) {
          std::this_thread::sleep_for(milliseconds(10));
        }
        answers = true;
      }
      meet(context);
      return;
    }
    Message in(context, 3000);
    in.buffer->recv(1, 1);
    signal(context, 1);  // behind the advert
    meetOutside();
    std::thread aborter([&] { in.buffer->abortWaitRecv(); });
    EXPECT_FALSE(in.buffer->waitRecv());
    EXPECT_TRUE(answers);
    over = true;
    aborter.join();
    meet(context);
  });
}

TEST_P(TakingBackTest, ASendBufferTakesBackWhatNoBufferIsThereFor) {
  run(2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    if (context->rank == 0) {
      auto bytes = std::make_unique<std::vector<char>>(pattern(1, 3000));
      auto send = pair.createSendBuffer(5, bytes->data(), bytes->size());
      send->send();
      send->send(100, 200);
      send.reset();
      bytes.reset();
      meet(context);
      auto good = pattern(2, 3000);
      send = pair.createSendBuffer(5, good.data(), good.size());
      send->send();
      send->waitSend();
      meet(context);
      return;
    }
    meet(context);
    std::vector<char> bytes(3000);
    auto recv = pair.createRecvBuffer(5, bytes.data(), bytes.size());
    recv->waitRecv();
    EXPECT_EQ(mismatch(2, bytes.data(), bytes.size()), bytes.size());
    meet(context);
  });
}

// More often than a pair has indices at first.
TEST_P(TakingBackTest, TheIndexOfAnAdvertIsUsedAgain) {
  FakeOptions options;
  options.shape = GetParam();
  spawn(Mode::kThreads, fakeDevices(options), 2, [](const ContextPtr& context) {
    for (int i = 0; i < 200 && context->rank == 0; i++) {
      // The peer knows the place in the queue of both.
      auto unadvertised = std::make_unique<Message>(context, 10);
      unadvertised->buffer->recv(1, 1);
      Message advertised(context, 3000);
      advertised.buffer->recv(1, 1);
      unadvertised.reset();
    }
    meet(context);
  });
  EXPECT_LT(options.watch->mostAdvert, 64u);
  EXPECT_EQ(options.watch->broken(), 0u);
}

TEST_P(TakingBackTest, ATimeoutNamesWhatWasWaitedFor) {
  for (const bool sends : {false, true}) {
    run(3, [=](const ContextPtr& context) {
      if (context->rank != 0) {
        EXPECT_THROW(awaitSignal(context, 0), IoException);
        return;
      }
      Message both(context, 100000);
      const auto receive = [&] { both.buffer->recv(2, 2, 0, 50000); };
      if (sends) {
        receive();
      }
      both.buffer->send(1, 1, 50000);
      if (!sends) {
        receive();
      }
      std::string text;
      try {
        sends ? both.buffer->waitSend(milliseconds(100))
              : both.buffer->waitRecv(milliseconds(100));
      } catch (const TimeoutException& e) {
        text = e.what();
      }
      const auto names = [&](const char* part) {
        return text.find(part) != std::string::npos;
      };
      EXPECT_EQ(names("send to rank 1"), sends) << text;
      EXPECT_EQ(names("recv from rank 2"), !sends) << text;
    });
  }
}

// For longer than a peer that is silent is waited for.
void TakingBackTest::readSlowlyWhile(const Step& end, bool lives) {
  constexpr size_t kSize = 5000 * 2000;
  run(2, [&](const ContextPtr& context) {
    if (context->rank == 0) {
      Message out(context, pattern(3, kSize));
      awaitSignal(context, 1);  // behind the advert
      meetOutside();
      out.buffer->send(1, 1);
      end(context, out.buffer);
      return;
    }
    Message in(context, kSize);
    in.buffer->recv(0, 1);
    signal(context, 0);
    {
      const auto lock = inside(context).lock();
      meetOutside();
      const auto until = std::chrono::steady_clock::now() + milliseconds(2600);
      while (std::chrono::steady_clock::now() < until) {
        (void)inside(context).domain().poll();
        std::this_thread::sleep_for(milliseconds(40));
      }
    }
    EXPECT_TRUE(in.buffer->waitRecv());
    EXPECT_TRUE(in.holds(3));
    if (lives) {
      awaitSignal(context, 0);
    }
  });
}

TEST_P(TakingBackTest, ABufferWaitsForAPeerThatReadsSlowly) {
  readSlowlyWhile(
      [](const ContextPtr& context, BufferPtr& buffer) {
        buffer.reset();
        signal(context, 1);  // the context lives
      },
      true);
}

TEST_P(TakingBackTest, AClosingContextWaitsForAPeerThatReadsSlowly) {
  readSlowlyWhile(
      [](const ContextPtr& context, BufferPtr&) { inside(context).close(); },
      false);
}

INSTANTIATE_TEST_SUITE_P(, TakingBackTest,
                         ::testing::Values(FakeShape::kStream,
                                           FakeShape::kPush),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
