// What another library's verbs transport got wrong, each with the test that
// fails when it comes back; below are those that no other file has.
//
// - A slot of 64 bits was cut to 32: MessagesTest.SlotsHave64Bits.
//
// - A failed completion ended the process: VerbsStatusTest.*.
//
// - A failed post left all waiting: VerbsFailureTest.ASendThatCannotBePosted*.
//
// - No more than 8 operations in flight: FarMoreThanEightBoundSendsAreInFlight,
//   VerbsDeviceTest.AThousandMessagesInFlightOnOnePair.
//
// - A send longer than its receive wrote past it: EndingTest.ASendLonger*,
//   BoundTest.LongerThanThePeersBuffer.
//
// - A completion found its buffer destroyed: ACompletionThatComesAfter*,
//   ABufferIsNotDestroyedBeforeItsSendIsComplete.
//
// - close() told nobody: ConnectingTest.CloseConnectionsLeavesInOrder.
//
// - Waits had no end: EndingTest.TheContextsTimeoutIsUsed.
//
// - The remote key was the local one: ThePeersKeyIsNotTheLocalOne.
//
// - Nothing above max_msg_sz: MessagesAboveThePortsLimitAreSplit,
//   VerbsDeviceTest.SizesAroundTheLongestMessage.
//
// - A registration for each receive: VerbsCountsTest.*.
//
// - Pauses of receivers that were not ready: all. A send that meets no receive,
// and
//   an RNR timer of 0, are the fake's mistakes; devices count them
//   (tests/soft_roce/without_rnr.sh).
//
// - MTU 1024, hop limit 1, GID 0: VerbsLimitsTest.EveryMtu*, PortChoice.*, and
// all:
//   a hop limit of 1 is the fake's mistake.
//
// - Raw structs on the wire: the fuzz targets qp_address and frame.
//
// - Harm by a fork: AForkedChildTakesNothingFromItsParent,
//   VerbsDeviceTest.AForkAfterUseHarmsNobody.
//
// - No receive from any source, none lazy: AnyTest.*, LazyTest.*, all with
//   verbs_lazy.
//
// - Nobody read asynchronous events: VerbsFailureTest.*Event*, *IsNamed.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include "gloo/internal/statistics.h"
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class VerbsDefectsTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  static void run(const FakeDevices& devices, const TransportFunction& body) {
    spawn(Mode::kThreads, fakeVerbsDevices(devices), 2, body);
  }

  // A message there and back.
  static void exchange(const ContextPtr& context, size_t bytes, uint64_t seed) {
    const int peer = 1 - context->rank;
    Message out(context, pattern(seed + context->rank, bytes));
    Message in(context, bytes);
    in.buffer->recv(peer, seed);
    out.buffer->send(peer, seed);
    EXPECT_TRUE(out.buffer->waitSend());
    EXPECT_TRUE(in.buffer->waitRecv());
    EXPECT_TRUE(in.holds(seed + peer));
  }
};

TEST_F(VerbsDefectsTest, MessagesAboveThePortsLimitAreSplit) {
  FakeDevices devices = plainDevices();
  devices.config.ports[0].maxMessageBytes = 32 << 10;
  run(devices, [](const ContextPtr& context) {
    constexpr size_t kLimit = 32 << 10;
    for (const size_t bytes : {kLimit - 1, kLimit, kLimit + 1, 7 * kLimit}) {
      exchange(context, bytes, bytes);
    }
    std::vector<char> memory(5 * kLimit);
    auto& pair = *context->getPair(1 - context->rank);
    auto send = pair.createSendBuffer(1, memory.data(), memory.size());
    std::vector<char> place(memory.size());
    auto recv = pair.createRecvBuffer(1, place.data(), place.size());
    memory.back() = 'x';
    send->send();
    recv->waitRecv();
    send->waitSend();
    EXPECT_EQ(place, memory);
    meet(context);
  });
}

TEST_F(VerbsDefectsTest, FarMoreThanEightBoundSendsAreInFlight) {
  run(plainDevices(), [](const ContextPtr& context) {
    constexpr size_t kSends = 500;
    constexpr size_t kSize = 64;
    auto& pair = *context->getPair(1 - context->rank);
    const auto own = static_cast<uint64_t>(context->rank);
    auto memory = pattern(own, kSends * kSize);
    auto send = pair.createSendBuffer(1, memory.data(), memory.size());
    std::vector<char> place(memory.size());
    auto recv = pair.createRecvBuffer(1, place.data(), place.size());
    for (size_t i = 0; i < kSends; i++) {
      send->send(i * kSize, kSize, i * kSize);
    }
    for (size_t arrived = kSize; arrived <= place.size(); arrived += kSize) {
      send->waitSend();
      recv->waitRecv();
      ASSERT_GE(mismatch(1 - own, place.data(), arrived), arrived);
    }
    meet(context);
  });
}

// What was copied, or went inline, is sent before its completion is seen.
TEST_F(VerbsDefectsTest, ACompletionThatComesAfterItsBufferIsGoneHarmsNobody) {
  run(plainDevices(), [](const ContextPtr& context) {
    constexpr size_t kShort = 64;
    constexpr size_t kCopied = 10000;
    std::vector<char> place(kShort);
    auto& pair = *context->getPair(1 - context->rank);
    auto bound = pair.createRecvBuffer(1, place.data(), place.size());
    meet(context);
    if (context->rank == 0) {
      fakeVerbs().holdCompletions();
      for (const size_t bytes : {kShort, kCopied}) {
        Message out(context, pattern(bytes, bytes));
        out.buffer->send(1, bytes);
        EXPECT_TRUE(out.buffer->waitSend());
      }
      {
        std::vector<char> memory(pattern(1, kShort));
        auto out = pair.createSendBuffer(1, memory.data(), memory.size());
        out->send();
        out->waitSend();
      }
      fakeVerbs().releaseCompletions();
    } else {
      for (const size_t bytes : {kShort, kCopied}) {
        Message in(context, bytes);
        in.buffer->recv(0, bytes);
        EXPECT_TRUE(in.buffer->waitRecv());
        EXPECT_TRUE(in.holds(bytes));
      }
      bound->waitRecv();
      EXPECT_EQ(place, pattern(1, kShort));
    }
    meet(context);
  });
}

// The device reads it until then.
TEST_F(VerbsDefectsTest, ABufferIsNotDestroyedBeforeItsSendIsComplete) {
  run(plainDevices(), [](const ContextPtr& context) {
    constexpr size_t kBytes = 1 << 20;
    if (context->rank == 0) {
      awaitSignal(context, 1);  // behind the advert
      Message out(context, pattern(1, kBytes));
      fakeVerbs().holdCompletions();
      out.buffer->send(1, 1);
      auto destroying =
          std::async(std::launch::async, [&] { out.buffer.reset(); });
      EXPECT_EQ(destroying.wait_for(std::chrono::milliseconds(50)),
                std::future_status::timeout);
      fakeVerbs().releaseCompletions();
      destroying.get();
    } else {
      Message in(context, kBytes);
      in.buffer->recv(0, 1);
      signal(context, 0);
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_TRUE(in.holds(1));
    }
    meet(context);
  });
}

TEST_F(VerbsDefectsTest, ABufferThatIsDestroyedRightAfterItsSendHarmsNobody) {
  run(plainDevices(), [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    for (uint64_t slot = 1; slot <= 20; slot++) {
      std::vector<char> memory(1 << 20);
      auto out = context->createUnboundBuffer(memory.data(), memory.size());
      Message in(context, memory.size());
      in.buffer->recv(peer, slot);
      out->send(peer, slot);
      EXPECT_TRUE(out->waitSend());
      out.reset();
      EXPECT_TRUE(in.buffer->waitRecv());
    }
    meet(context);
  });
}

// What one buffer registers another one over the same memory uses too; whoever
// ends first.
TEST_F(VerbsDefectsTest, ABufferIsDestroyedWhileAnotherUsesItsRegistration) {
  FakeDevices devices = plainDevices();
  devices.config.ports[0].maxMessageBytes = 32 << 10;
  run(devices, [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    constexpr size_t kBytes = 8 << 20;
    Message message(context, pattern(context->rank, kBytes));
    char* const memory = message.bytes.data();
    if (context->rank == 0) {
      auto other = context->createUnboundBuffer(memory, kBytes);
      message.buffer->send(peer, 1);
      signal(context, peer);
      awaitSignal(context, peer);  // that the receive is there
      other.reset();
      EXPECT_TRUE(message.buffer->waitSend());
    } else {
      awaitSignal(context, peer);
      auto other = context->createUnboundBuffer(memory, kBytes);
      message.buffer->recv(peer, 1);
      signal(context, peer);
      other.reset();
      EXPECT_TRUE(message.buffer->waitRecv());
      EXPECT_TRUE(message.holds(peer));
    }
    meet(context);
  });
}

// The fake takes neither for the other.
TEST_F(VerbsDefectsTest, ThePeersKeyIsNotTheLocalOne) {
  run(plainDevices(), [](const ContextPtr& context) {
    for (const size_t bytes : {100, 10000, 1 << 20}) {
      exchange(context, bytes, bytes);
    }
    std::vector<char> memory(5000, 'x');
    std::vector<char> place(memory.size());
    auto& pair = *context->getPair(1 - context->rank);
    auto send = pair.createSendBuffer(1, memory.data(), memory.size());
    auto recv = pair.createRecvBuffer(1, place.data(), place.size());
    send->send();
    recv->waitRecv();
    send->waitSend();
    EXPECT_EQ(place, memory);
    meet(context);
  });
}

TEST_F(VerbsDefectsTest, AForkedChildTakesNothingFromItsParent) {
  run(plainDevices(), [](const ContextPtr& context) {
    exchange(context, 100, 1);
    exchange(context, 1 << 20, 2);
    Message message(context, 1 << 20);
    const pid_t child = fork();
    if (child == 0) {
      message.buffer.reset();
      const_cast<ContextPtr&>(context).reset();
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    exchange(context, 100, 3);
    exchange(context, 1 << 20, 4);
    meet(context);
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
