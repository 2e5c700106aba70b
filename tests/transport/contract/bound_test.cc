// Bound Buffers: memory tied to a slot of a pair.
#include <algorithm>

#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class BoundTest : public ContractTest {};

TEST_P(BoundTest, BothOrdersOfCreation) {
  run(2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    for (int round = 0; round < 20; round++) {
      const bool sender = context->rank == round % 2;
      const bool first = round % 4 < 2;  // the sender makes its buffer first
      const size_t size = round % 3 == 0 ? 300000 : 100;
      if (sender != first) {
        awaitSignal(context, 1 - context->rank);
      }
      auto bytes = sender ? pattern(round, size) : std::vector<char>(size);
      auto buffer = sender ? pair.createSendBuffer(round, bytes.data(), size)
                           : pair.createRecvBuffer(round, bytes.data(), size);
      if (sender) {
        buffer->send();
      }
      if (sender == first) {
        signal(context, 1 - context->rank);
      }
      if (sender) {
        buffer->waitSend();
      } else {
        buffer->waitRecv();
        EXPECT_EQ(mismatch(round, bytes.data(), size), size) << round;
      }
      meet(context);
    }
  });
}

TEST_P(BoundTest, SeveralSendsInFlight) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kParts = 50;
    constexpr size_t kSize = 10000;
    auto& pair = *context->getPair(1 - context->rank);
    if (context->rank == 0) {
      auto bytes = pattern(1, kParts * kSize);
      auto buffer = pair.createSendBuffer(3, bytes.data(), bytes.size());
      for (size_t i = 0; i < kParts; i++) {
        buffer->send(i * kSize, kSize, i * kSize);
      }
      for (size_t i = 0; i < kParts; i++) {
        buffer->waitSend();
      }
      meet(context);
    } else {
      std::vector<char> bytes(kParts * kSize);
      auto buffer = pair.createRecvBuffer(3, bytes.data(), bytes.size());
      for (size_t i = 0; i < kParts; i++) {
        buffer->waitRecv();  // in order
        EXPECT_EQ(bytes[i * kSize], patternByte(1, i * kSize));
      }
      EXPECT_EQ(mismatch(1, bytes.data(), bytes.size()), bytes.size());
      meet(context);
    }
  });
}

TEST_P(BoundTest, OffsetsOnBothSides) {
  run(2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    std::vector<char> bytes(1000, 'c');
    if (context->rank == 0) {
      const auto text = pattern(2, 100);
      std::copy(text.begin(), text.end(), bytes.begin() + 700);
      auto buffer = pair.createSendBuffer(1, bytes.data(), bytes.size());
      buffer->send(700, 100, 33);
      buffer->waitSend();
      meet(context);
    } else {
      auto buffer = pair.createRecvBuffer(1, bytes.data(), bytes.size());
      buffer->waitRecv();
      EXPECT_EQ(mismatch(2, bytes.data() + 33, 100), 100u);
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c') -
                    std::count(bytes.begin() + 33, bytes.begin() + 133, 'c'),
                900);
      meet(context);
    }
  });
}

TEST_P(BoundTest, PingPongReusesBuffers) {
  run(2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    for (const size_t size : {size_t{4}, size_t{70000}}) {
      std::vector<char> out(size);
      std::vector<char> in(size);
      const int slot = static_cast<int>(size);
      auto send = pair.createSendBuffer(slot, out.data(), size);
      auto recv = pair.createRecvBuffer(slot, in.data(), size);
      for (int i = 0; i < 100; i++) {
        if (context->rank == i % 2) {
          const auto text = pattern(i, size);
          std::copy(text.begin(), text.end(), out.begin());
          send->send();
          send->waitSend();
        } else {
          recv->waitRecv();
          EXPECT_EQ(mismatch(i, in.data(), size), size) << i;
        }
      }
      meet(context);
    }
  });
}

TEST_P(BoundTest, ZeroBytes) {
  run(2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    auto send = pair.createSendBuffer(0, nullptr, 0);
    auto recv = pair.createRecvBuffer(0, nullptr, 0);
    send->send();
    recv->waitRecv();
    send->waitSend();
    meet(context);
  });
}

TEST_P(BoundTest, RangesOutsideAreRefused) {
  run(2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    std::vector<char> out(100);
    std::vector<char> in(50);
    auto recv = pair.createRecvBuffer(1, in.data(), in.size());
    meet(context);
    auto send = pair.createSendBuffer(1, out.data(), out.size());
    EXPECT_THROW(send->send(0, 101), EnforceNotMet);
    EXPECT_THROW(send->send(101, 0), EnforceNotMet);
    EXPECT_THROW(send->send(1, ~size_t{0}), EnforceNotMet);
    send->send(0, 50);
    recv->waitRecv();
    send->waitSend();
    meet(context);
  });
}

// Longer than the peer's buffer: refused here, or an error on both sides; no
// byte is written past the end.
TEST_P(BoundTest, LongerThanThePeersBuffer) {
  run(2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    std::vector<char> bytes(1000, 'c');
    if (context->rank == 0) {
      auto send = pair.createSendBuffer(1, bytes.data(), bytes.size());
      awaitSignal(context, 1);
      EXPECT_ANY_THROW({
        send->send(0, 60);
        send->waitSend();
        send->waitSend();  // an error of the peer's comes later
      });
    } else {
      auto recv = pair.createRecvBuffer(1, bytes.data(), 50);
      signal(context, 0);
      context->setTimeout(std::chrono::milliseconds(300));
      EXPECT_THROW(recv->waitRecv(), IoException);
      EXPECT_EQ(std::count(bytes.begin() + 50, bytes.end(), 'c'), 950);
    }
  });
}

// Of arrivals only the number is told: what was sent first is whole when the
// first one counts, though it leaves in several parts and the other does not.
TEST_P(BoundTest, AShortSendDoesNotOvertakeALongOne) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kLong = (size_t{3} << 20) + 5;
    constexpr size_t kShort = 100;
    auto& pair = *context->getPair(1 - context->rank);
    std::vector<char> bytes(kLong + 2 * kShort);
    auto buffer = context->rank == 0
                      ? pair.createSendBuffer(1, bytes.data(), bytes.size())
                      : pair.createRecvBuffer(1, bytes.data(), bytes.size());
    for (int round = 0; round < 3; round++) {
      std::fill(bytes.begin(), bytes.end(), 0);
      meet(context);
      if (context->rank == 0) {
        const auto text = pattern(round, bytes.size());
        std::copy(text.begin(), text.end(), bytes.begin());
        buffer->send(kLong, kShort, kLong);
        buffer->send(0, kLong, 0);
        buffer->send(kLong + kShort, kShort, kLong + kShort);
        buffer->waitSend();
        buffer->waitSend();
        std::fill(bytes.begin(), bytes.begin() + kLong, 'c');  // it has left
        buffer->waitSend();
      } else {
        buffer->waitRecv();
        EXPECT_EQ(bytes[kLong], patternByte(round, kLong)) << round;
        buffer->waitRecv();
        EXPECT_EQ(mismatch(round, bytes.data(), kLong), kLong) << round;
        buffer->waitRecv();
        EXPECT_EQ(mismatch(round, bytes.data(), bytes.size()), bytes.size())
            << round;
      }
    }
    meet(context);
  });
}

// The sender knows nothing of it: what it sends meanwhile is lost, or goes to
// the next buffer on that slot, but never into memory that was given back.
TEST_P(BoundTest, ABufferIsReplacedWhileThePeerSends) {
  run(2, [](const ContextPtr& context) {
    constexpr int kRounds = 30;
    auto& pair = *context->getPair(1 - context->rank);
    for (const size_t size : {size_t{100}, size_t{300000}}) {
      const int slot = static_cast<int>(size);
      if (context->rank == 0) {
        auto bytes = pattern(slot, size);
        auto buffer = pair.createSendBuffer(slot, bytes.data(), size);
        for (int i = 0; i < kRounds; i++) {
          buffer->send();
          buffer->send();
          buffer->waitSend();
          buffer->waitSend();
          awaitSignal(context, 1);
        }
        meet(context);
        continue;
      }
      std::vector<char> bytes(size);
      for (int i = 0; i < kRounds; i++) {
        std::fill(bytes.begin(), bytes.end(), 0);
        auto buffer = pair.createRecvBuffer(slot, bytes.data(), size);
        buffer->waitRecv();
        buffer.reset();  // until now the second message may arrive
        EXPECT_EQ(mismatch(slot, bytes.data(), size), size) << i;
        std::fill(bytes.begin(), bytes.end(), 'c');
        signal(context, 0);
        EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c'),
                  static_cast<ptrdiff_t>(size))
            << i;
      }
      auto last = pair.createRecvBuffer(slot, bytes.data(), size);
      meet(context);
    }
  });
}

TEST_P(BoundTest, SendsOfABufferInDebugModeAreLogged) {
  run(2, [](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    std::vector<char> bytes(24);
    if (context->rank == 1) {
      auto buffer = pair.createRecvBuffer(3, bytes.data(), bytes.size());
      signal(context, 0);  // from now on a send may be a short cut
      for (int i = 0; i < 4; i++) {
        buffer->waitRecv();
      }
      meet(context);
      return;
    }
    auto buffer = pair.createSendBuffer(3, bytes.data(), bytes.size());
    awaitSignal(context, 1);
    const auto logOf = [&](LogLevel level, bool debug) {
      const LogLevel before = logLevel();
      setLogLevel(level);
      testing::internal::CaptureStderr();
      buffer->setDebug(debug);
      buffer->send(8, 16);
      buffer->waitSend();
      setLogLevel(before);
      return testing::internal::GetCapturedStderr();
    };
    const std::string line = "slot 3: send of 16 bytes to rank 1";
    for (const bool debug : {true, false}) {
      const std::string log = logOf(LogLevel::DEBUG, debug);
      EXPECT_EQ(log.find(line) != std::string::npos, debug) << log;
    }
    EXPECT_EQ(logOf(LogLevel::INFO, true).find(line), std::string::npos);
    EXPECT_EQ(logOf(LogLevel::INFO, false).find(line), std::string::npos);
    meet(context);
  });
}

GLOO_CONTRACT_SUITE(BoundTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
