// Operations that are aborted.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class AbortTest : public ContractTest {};

TEST_P(AbortTest, AbortEndsAWaitAndTheContextLivesOn) {
  run(2, [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    for (const size_t size : {size_t{100}, size_t{1} << 20}) {
      Message in(context, size);
      in.buffer->recv(peer, 1);
      std::thread other([&] { in.buffer->abortWaitRecv(); });
      EXPECT_FALSE(in.buffer->waitRecv());
      other.join();
      meet(context);
      // The aborted receive takes no message any more.
      Message out(context, pattern(context->rank, size));
      Message again(context, size);
      again.buffer->recv(peer, 1);
      out.buffer->send(peer, 1);
      EXPECT_TRUE(again.buffer->waitRecv());
      EXPECT_TRUE(out.buffer->waitSend());
      EXPECT_TRUE(again.holds(peer));
      meet(context);
    }
  });
}

TEST_P(AbortTest, AbortOfASendThatNobodyReceives) {
  run(2, [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    constexpr size_t kSize = 4 << 20;  // has to wait for its receive
    {
      Message out(context, std::vector<char>(kSize, 'x'));
      out.buffer->send(peer, 1);
      std::thread other([&] { out.buffer->abortWaitSend(); });
      EXPECT_FALSE(out.buffer->waitSend());
      other.join();
    }
    meet(context);
    Message out(context, pattern(context->rank, kSize));
    Message in(context, kSize);
    out.buffer->send(peer, 1);
    in.buffer->recv(peer, 1);
    EXPECT_TRUE(in.buffer->waitRecv());
    EXPECT_TRUE(out.buffer->waitSend());
    EXPECT_TRUE(in.holds(peer));
    meet(context);
  });
}

TEST_P(AbortTest, AbortBeforeTheWait) {
  run(2, [](const ContextPtr& context) {
    auto buffer = context->createUnboundBuffer(nullptr, 0);
    buffer->abortWaitRecv();
    EXPECT_FALSE(buffer->waitRecv());
    buffer->abortWaitSend();
    EXPECT_FALSE(buffer->waitSend());
    meet(context);
  });
}

// What it ends is the next wait, and the operation that that is for: its memory
// is the caller's again.
TEST_P(AbortTest, AbortBeforeTheOperation) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kSize = 1 << 20;
    const std::vector<char> mine(kSize, 'c');
    Message in(context, mine);
    Message out(context, pattern(context->rank, kSize));
    in.buffer->abortWaitRecv();
    in.buffer->recv(1 - context->rank, 1);
    EXPECT_FALSE(in.buffer->waitRecv());
    meet(context);
    out.buffer->send(1 - context->rank, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(in.bytes, mine);
    in.buffer->recv(1 - context->rank, 1);
    EXPECT_TRUE(in.buffer->waitRecv());
    EXPECT_TRUE(in.holds(1 - context->rank));
    EXPECT_TRUE(out.buffer->waitSend());
    meet(context);
  });
}

TEST_P(AbortTest, AbortOfAReceiveFromAny) {
  run(3, [](const ContextPtr& context) {
    if (context->rank == 0) {
      Message in(context, size_t{1} << 20);
      in.buffer->recv(std::vector<int>{1, 2}, 1);
      in.buffer->abortWaitRecv();
      EXPECT_FALSE(in.buffer->waitRecv());
    }
    meet(context);
    Message message(context, context->rank == 0
                                 ? std::vector<char>(1 << 20)
                                 : pattern(context->rank, 1 << 20));
    for (int i = 1; i < 3; i++) {
      if (context->rank == 0) {
        message.buffer->recv(std::vector<int>{1, 2}, 1);
        int rank = -1;
        EXPECT_TRUE(message.buffer->waitRecv(&rank));
        EXPECT_TRUE(message.holds(rank));
      } else if (context->rank == i) {
        message.buffer->send(0, 1);
        EXPECT_TRUE(message.buffer->waitSend());
      }
    }
    meet(context);
  });
}

// An aborted or timed out receive, and a destroyed buffer: nobody writes to
// that memory any more, although the message comes.
// Each is taken back at the place that it has when the peer hears of it.
TEST_P(AbortTest, SeveralReceivesOfASlotAreTakenBack) {
  run(2, [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    for (const size_t size : {size_t{40} << 10, size_t{1} << 20}) {
      for (const size_t count : {2, 3}) {
        Message old(context, std::vector<char>(count * size, 'c'));
        Message other(context, std::vector<char>(size, 'c'));
        if (context->rank == 0) {
          other.buffer->recv(peer, 1);
          for (size_t i = 0; i < count; i++) {
            old.buffer->recv(peer, 1, i * size, size);
          }
        }
        meet(context);
        if (context->rank == 0) {  // two owners at the same time
          std::thread thread([&] { other.buffer->abortWaitRecv(); });
          old.buffer.reset();
          thread.join();
        }
        meet(context);
        Message out(context, pattern(context->rank, size));
        Message in(context, size);
        in.buffer->recv(peer, 1);
        out.buffer->send(peer, 1);
        EXPECT_TRUE(in.buffer->waitRecv());
        EXPECT_TRUE(out.buffer->waitSend());
        EXPECT_TRUE(in.holds(peer));
        meet(context);
        EXPECT_EQ(old.bytes, std::vector<char>(count * size, 'c'));
        EXPECT_EQ(other.bytes, std::vector<char>(size, 'c'));
      }
    }
  });
}

TEST_P(AbortTest, MemoryIsNotTouchedAfterAnAbort) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kSize = 2 << 20;
    if (context->rank == 0) {
      std::vector<char> bytes(kSize, 'c');
      for (int i = 0; i < 5; i++) {
        auto buffer = context->createUnboundBuffer(bytes.data(), kSize);
        buffer->recv(1, 1);
        if (i % 2 == 0) {
          buffer->abortWaitRecv();
        }
        buffer.reset();
      }
      signal(context, 1);
      Message in(context, kSize);
      in.buffer->recv(1, 1);
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_TRUE(in.holds(8));
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'c'),
                static_cast<long>(kSize));
      meet(context);
    } else {
      awaitSignal(context, 0);
      Message out(context, pattern(8, kSize));
      out.buffer->send(0, 1);
      EXPECT_TRUE(out.buffer->waitSend());
      meet(context);
    }
  });
}

// One of them ends, the other one goes on with what is left.
TEST_P(AbortTest, OfTwoWaitsOneEnds) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kSize = 1 << 20;
    const int peer = 1 - context->rank;
    for (int round = 0; round < 20; round++) {
      Message in(context, 2 * kSize);
      Message out(context, kSize);
      in.buffer->abortWaitRecv();
      in.buffer->recv(peer, 1, 0, kSize);
      in.buffer->recv(peer, 1, kSize, kSize);
      std::atomic<int> received{0};
      std::atomic<int> aborted{0};
      const auto wait = [&] {
        if (in.buffer->waitRecv()) {
          received++;
          return;
        }
        aborted++;
        out.buffer->send(peer, 1);
        EXPECT_TRUE(out.buffer->waitSend());
      };
      std::thread other(wait);
      wait();
      other.join();
      EXPECT_EQ(received, 1);
      EXPECT_EQ(aborted, 1);
      meet(context);
    }
  });
}

GLOO_CONTRACT_SUITE(AbortTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
