// Of what arrives in a bound buffer only the number is told, and of what has
// left it: the order is all that both sides have.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "tests/transport/ibverbs/harm.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr size_t kPart = 4096;
constexpr size_t kLong = 100 * kPart + 7;
constexpr size_t kShort = 100;  // inlined

class VerbsBoundOrderTest : public VerbsFailureTest {
 protected:
  static DeviceMaker devices() {
    FakeDevices devices = asynchronousDevices(5);
    devices.config.ports[0].maxMessageBytes = kPart;
    return fakeVerbsDevices(devices);
  }
};

// The first one's other parts have to wait until the queue pair has room.
TEST_F(VerbsBoundOrderTest, AWriteIsWholeBeforeTheNextOneIsTold) {
  spawn(Mode::kThreads, devices(), 2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    const auto sent = pattern(1, kLong + 2 * kShort);
    auto bytes = context->rank == 0 ? sent : std::vector<char>(sent.size());
    if (context->rank == 0) {
      auto send = pair.createSendBuffer(1, bytes.data(), bytes.size());
      meet(context);
      fakeVerbs().pause();
      send->send(0, kLong, 0);
      send->send(kLong, kShort, kLong);
      send->send(kLong + kShort, kShort, kLong + kShort);
      fakeVerbs().resume();
      send->waitSend();
      std::fill_n(bytes.begin(), kLong, 'c');
      send->waitSend();
      send->waitSend();
    } else {
      auto recv = pair.createRecvBuffer(1, bytes.data(), bytes.size());
      meet(context);
      for (const size_t arrived : {kLong, kLong + kShort, sent.size()}) {
        recv->waitRecv();
        EXPECT_EQ(mismatch(1, bytes.data(), arrived), arrived);
      }
    }
    meet(context);
  });
}

// In both directions, and each buffer's in their order.
TEST_F(VerbsBoundOrderTest, LongWritesOfSeveralBuffersTakeTurns) {
  spawn(Mode::kThreads, devices(), 2, [](const ContextPtr& context) {
    constexpr int kBuffers = 4;
    constexpr int kSends = 3;
    auto& pair = *context->getPair(1 - context->rank);
    std::vector<std::vector<char>> bytes;
    std::vector<std::unique_ptr<transport::Buffer>> buffers;
    for (int i = 0; i < kBuffers; i++) {
      const bool sends = context->rank == i % 2;
      bytes.push_back(sends ? pattern(i, kSends * kLong)
                            : std::vector<char>(kSends * kLong));
      buffers.push_back(
          sends ? pair.createSendBuffer(i, bytes[i].data(), bytes[i].size())
                : pair.createRecvBuffer(i, bytes[i].data(), bytes[i].size()));
    }
    meet(context);
    for (size_t send = 0; send < kSends; send++) {
      for (int i = context->rank; i < kBuffers; i += 2) {
        buffers[i]->send(send * kLong, kLong, send * kLong);
      }
    }
    for (size_t send = 1; send <= kSends; send++) {
      for (int i = 0; i < kBuffers; i++) {
        if (context->rank == i % 2) {
          buffers[i]->waitSend();
        } else {
          buffers[i]->waitRecv();
          EXPECT_EQ(mismatch(i, bytes[i].data(), send * kLong), send * kLong)
              << "buffer " << i << ", send " << send;
        }
      }
    }
    meet(context);
  });
}

// A short one is copied when it is posted, behind one that is not.
TEST_F(VerbsBoundOrderTest, ACopiedWriteIsNotSentBeforeTheOneAheadOfIt) {
  spawn(Mode::kThreads, devices(), 2, [this](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    std::vector<char> bytes(kPart + kShort);
    if (context->rank == 0) {
      auto send = pair.createSendBuffer(1, bytes.data(), bytes.size());
      meet(context);
      meetOutside();
      fakeVerbs().pause();
      send->send(0, kPart, 0);
      send->send(kPart, kShort, kPart);
      context->setTimeout(std::chrono::milliseconds(20));
      EXPECT_THROW(send->waitSend(), TimeoutException);
      fakeVerbs().resume();
    } else {
      auto recv = pair.createRecvBuffer(1, bytes.data(), bytes.size());
      meet(context);
      meetOutside();
      EXPECT_THROW(wait(context), IoException);
    }
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
