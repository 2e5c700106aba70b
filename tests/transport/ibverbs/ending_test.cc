// What is left of receives whose pair, or context, ends in an unusual order.
#include <gmock/gmock.h>

#include <barrier>
#include <chrono>
#include <string>
#include <thread>

#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

transport::base::Context& inside(const ContextPtr& context) {
  return dynamic_cast<transport::base::Context&>(*context);
}

void waitUntilConnected(const ContextPtr& context, int peer) {
  while (!context->getPair(peer)->isConnected()) {
    std::this_thread::sleep_for(milliseconds(1));
  }
}

class VerbsEndingTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  using Step = std::function<void(const ContextPtr&)>;
  void noWriteAfter(const Step& leave);

  // Not over the transport.
  void meetOutside() { outside_.arrive_and_wait(); }

 private:
  std::barrier<> outside_{2};
};

// Rank 1 has leave to write, and does not hear that rank 0 leaves it.
void VerbsEndingTest::noWriteAfter(const Step& leave) {
  constexpr size_t kSize = 1 << 20;
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
    meet(context);
    if (context->rank == 1) {
      awaitSignal(context, 0);
      auto lock = inside(context).lock();
      meetOutside();
      meetOutside();
      return;
    }
    std::vector<char> bytes(kSize, 'c');
    auto in = context->createUnboundBuffer(bytes.data(), kSize);
    in->recv(1, 1);
    signal(context, 1);  // behind the advert
    meetOutside();
    EXPECT_TRUE(fakeVerbs().canBeWritten(bytes.data(), kSize));
    std::thread leaver([&] { leave(context); });
    while (context->getPair(1)->isConnected()) {
      std::this_thread::yield();
    }
    EXPECT_THROW(in->waitRecv(milliseconds(100)), IoException);
    EXPECT_FALSE(fakeVerbs().canBeWritten(bytes.data(), kSize));
    leaver.join();
    meetOutside();
  });
}

TEST_F(VerbsEndingTest, NoWriteAfterAWaitOnAPairThatThisRankHasClosed) {
  noWriteAfter([](const ContextPtr& context) { context->getPair(1)->close(); });
}

TEST_F(VerbsEndingTest, NoWriteAfterAWaitWhileAnotherThreadCloses) {
  noWriteAfter([](const ContextPtr& context) { inside(context).close(); });
}

// The close waits for longer than the buffer, which came first.
TEST_F(VerbsEndingTest, NoWriteAfterABufferThatEndsWhileAnotherThreadCloses) {
  constexpr size_t kSize = 1 << 20;
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
    meet(context);
    if (context->rank == 1) {
      awaitSignal(context, 0);
      auto lock = inside(context).lock();
      meetOutside();
      meetOutside();
      return;
    }
    std::vector<char> bytes(kSize, 'c');
    auto in = context->createUnboundBuffer(bytes.data(), kSize);
    in->recv(1, 1);
    signal(context, 1);  // behind the advert
    meetOutside();
    std::thread closer([&] {
      std::this_thread::sleep_for(milliseconds(500));
      inside(context).close();
    });
    in.reset();
    EXPECT_FALSE(fakeVerbs().canBeWritten(bytes.data(), kSize));
    closer.join();
    meetOutside();
  });
}

// A receive from any is in the way of a long one, which is advertised once that
// is over. Its memory cannot be registered then: the context fails, with both.
// (The peers answer no call before both are posted: over a link that is there
// already, a receive registers its memory at once.)
TEST_F(VerbsEndingTest, WhatAMessageUnblocksCannotBeRegistered) {
  FakeDevices devices = plainDevices();
  devices.lazy = true;
  const auto maker = fakeVerbsDevices(devices);
  std::barrier<> ranks(3);
  const auto meetAll = [&ranks] { ranks.arrive_and_wait(); };
  const auto peer = [&](const ContextPtr& context) {
    {
      auto lock = inside(context).lock();
      meetAll();  // none of them answers
      meetAll();  // both are posted
    }
    waitUntilConnected(context, 0);
    meetAll();  // all are connected
    meetAll();  // the next registration fails
    if (context->rank == 1) {
      Message out(context, 8);
      try {
        out.buffer->send(0, 1);
        out.buffer->waitSend();
      } catch (const IoException&) {
        // It may hear of the failure first.
      }
    }
    meetAll();
  };
  spawn(Mode::kThreads, maker, 3, [&](const ContextPtr& context) {
    if (context->rank > 0) {
      peer(context);
      return;
    }
    Message any(context, 8);
    Message lengthy(context, 1 << 20);
    meetAll();
    any.buffer->recv({1, 2}, 1);
    lengthy.buffer->recv(1, 1);
    meetAll();
    waitUntilConnected(context, 1);
    waitUntilConnected(context, 2);
    meetAll();
    fakeVerbs().fail(FakeCall::kRegMr, ENOMEM);
    meetAll();
    EXPECT_THROW(any.buffer->waitRecv(), IoException);
    try {
      lengthy.buffer->waitRecv();
      ADD_FAILURE() << "received without registered memory";
    } catch (const IoException& e) {
      EXPECT_THAT(e.what(), HasSubstr("Cannot allocate memory"));
    }
    meetAll();
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
