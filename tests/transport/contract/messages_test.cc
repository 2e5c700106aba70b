// Tagged messages between UnboundBuffers.
#include <algorithm>
#include <random>
#include <thread>

#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class MessagesTest : public ContractTest {};

std::vector<size_t> interestingSizes() {
  std::vector<size_t> sizes = {0, 1, 63, 64, 65, 4096};
  for (size_t middle : {size_t{64} << 10, size_t{1} << 20, size_t{8} << 20}) {
    for (size_t size : {middle - 1, middle, middle + 1}) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

TEST_P(MessagesTest, ReceiveStartedFirst) {
  run(2, [](const ContextPtr& context) {
    for (const size_t size : interestingSizes()) {
      if (context->rank == 0) {
        Message message(context, size);
        message.buffer->recv(1, 7);
        signal(context, 1);
        EXPECT_TRUE(message.buffer->waitRecv());
        EXPECT_TRUE(message.holds(size));
      } else {
        Message message(context, pattern(size, size));
        awaitSignal(context, 0);
        message.buffer->send(0, 7);
        EXPECT_TRUE(message.buffer->waitSend());
      }
    }
  });
}

TEST_P(MessagesTest, SendStartedFirst) {
  run(2, [](const ContextPtr& context) {
    for (const size_t size : interestingSizes()) {
      if (context->rank == 1) {
        Message message(context, pattern(size, size));
        message.buffer->send(0, 7);
        signal(context, 0);
        EXPECT_TRUE(message.buffer->waitSend());
      } else {
        awaitSignal(context, 1);
        Message message(context, size);
        message.buffer->recv(1, 7);
        EXPECT_TRUE(message.buffer->waitRecv());
        EXPECT_TRUE(message.holds(size));
      }
    }
  });
}

TEST_P(MessagesTest, BothDirectionsAtOnce) {
  run(2, [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    for (const size_t size : interestingSizes()) {
      Message out(context, pattern(size + context->rank, size));
      Message in(context, size);
      out.buffer->send(peer, 1);
      in.buffer->recv(peer, 1);
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_TRUE(out.buffer->waitSend());
      EXPECT_TRUE(in.holds(size + peer));
    }
  });
}

TEST_P(MessagesTest, ZeroBytesWithANullPointer) {
  run(2, [](const ContextPtr& context) {
    auto buffer = context->createUnboundBuffer(nullptr, 0);
    int rank = -1;
    if (context->rank == 0) {
      buffer->recv(1, 3);
      EXPECT_TRUE(buffer->waitRecv(&rank));
      EXPECT_EQ(rank, 1);
    } else {
      buffer->send(0, 3);
      EXPECT_TRUE(buffer->waitSend(&rank));
      EXPECT_EQ(rank, 0);
    }
  });
}

// Slots that are equal in 32 bits are different slots.
TEST_P(MessagesTest, SlotsHave64Bits) {
  const std::vector<uint64_t> slots = {5, 5 + (1ull << 32), 5 + (1ull << 56),
                                       ~0ull, ~0ull >> 32};
  run(2, [&](const ContextPtr& context) {
    std::vector<std::unique_ptr<Message>> sent;
    for (size_t i = 0; i < slots.size(); i++) {
      if (context->rank == 0) {
        sent.push_back(std::make_unique<Message>(context, pattern(i, 100)));
        sent.back()->buffer->send(1, slots[i]);
      } else {
        const size_t k = slots.size() - 1 - i;
        Message message(context, 100);
        message.buffer->recv(0, slots[k]);
        EXPECT_TRUE(message.buffer->waitRecv());
        EXPECT_TRUE(message.holds(k));
      }
    }
    for (auto& message : sent) {
      EXPECT_TRUE(message->buffer->waitSend());
    }
  });
}

TEST_P(MessagesTest, AnyAlignment) {
  run(2, [](const ContextPtr& context) {
    for (const size_t size : {size_t{100}, size_t{200000}}) {
      for (size_t shift = 0; shift < 17; shift++) {
        Message message(context, size + 64);
        if (context->rank == 0) {
          const auto bytes = pattern(shift, size);
          std::copy(bytes.begin(), bytes.end(),
                    message.bytes.begin() + static_cast<long>(shift));
          message.buffer->send(1, 2, shift, size);
          EXPECT_TRUE(message.buffer->waitSend());
        } else {
          const size_t at = (shift * 7) % 17;
          message.buffer->recv(0, 2, at, size);
          EXPECT_TRUE(message.buffer->waitRecv());
          EXPECT_EQ(mismatch(shift, message.bytes.data() + at, size), size);
        }
      }
    }
  });
}

TEST_P(MessagesTest, FirstInFirstOutOnEachSlot) {
  run(2, [](const ContextPtr& context) {
    constexpr int kMessages = 300;
    std::mt19937 random(42);  // the same sizes on both ranks
    std::vector<std::unique_ptr<Message>> all;
    for (int i = 0; i < kMessages; i++) {
      const size_t size = random() % 5 == 0 ? random() % 300000 : random() % 99;
      if (context->rank == 0) {
        all.push_back(std::make_unique<Message>(context, pattern(i, size)));
        all.back()->buffer->send(1, 9);
      } else {
        all.push_back(std::make_unique<Message>(context, size));
        all.back()->buffer->recv(0, 9);
      }
    }
    for (int i = 0; i < kMessages; i++) {
      if (context->rank == 0) {
        EXPECT_TRUE(all[i]->buffer->waitSend());
      } else {
        EXPECT_TRUE(all[i]->buffer->waitRecv());
        EXPECT_TRUE(all[i]->holds(i));
      }
    }
  });
}

// Messages that nobody waits for yet must not stand in front of the wanted one.
TEST_P(MessagesTest, TagsStartedInOppositeOrders) {
  for (const size_t size : {size_t{1000}, size_t{30000}, size_t{400000}}) {
    run(2, [size](const ContextPtr& context) {
      constexpr int kTags = 64;
      const int peer = 1 - context->rank;
      std::vector<std::unique_ptr<Message>> out;
      for (int i = 0; i < kTags; i++) {
        const int tag = context->rank == 0 ? i : kTags - 1 - i;
        out.push_back(std::make_unique<Message>(context, pattern(tag, size)));
        out.back()->buffer->send(peer, tag);
      }
      for (int i = 0; i < kTags; i++) {
        // the one that the peer has started last
        const int tag = context->rank == 0 ? i : kTags - 1 - i;
        Message in(context, size);
        in.buffer->recv(peer, tag);
        EXPECT_TRUE(in.buffer->waitRecv());
        EXPECT_TRUE(in.holds(tag));
      }
      for (auto& message : out) {
        EXPECT_TRUE(message->buffer->waitSend());
      }
    });
  }
}

TEST_P(MessagesTest, TenThousandUnexpectedMessages) {
  run(2, [](const ContextPtr& context) {
    constexpr int kMessages = 10000;
    constexpr size_t kSize = 128;
    std::vector<char> all(kMessages * kSize);
    auto buffer = context->createUnboundBuffer(all.data(), all.size());
    if (context->rank == 0) {
      for (int i = 0; i < kMessages; i++) {
        const auto bytes = pattern(i, kSize);
        std::copy(bytes.begin(), bytes.end(), &all[i * kSize]);
        buffer->send(1, 100 + i, i * kSize, kSize);
      }
      signal(context, 1);
      for (int i = 0; i < kMessages; i++) {
        ASSERT_TRUE(buffer->waitSend());
      }
    } else {
      awaitSignal(context, 0);
      for (int i = kMessages - 1; i >= 0; i--) {
        buffer->recv(0, 100 + i, i * kSize, kSize);
        ASSERT_TRUE(buffer->waitRecv());
        ASSERT_EQ(mismatch(i, &all[i * kSize], kSize), kSize) << i;
      }
    }
  });
}

TEST_P(MessagesTest, ManyInFlightFromOneBuffer) {
  run(2, [](const ContextPtr& context) {
    constexpr size_t kParts = 100;
    constexpr size_t kSize = 50000;
    Message message(context, context->rank == 0
                                 ? pattern(1, kParts * kSize)
                                 : std::vector<char>(kParts * kSize));
    for (size_t i = 0; i < kParts; i++) {
      if (context->rank == 0) {
        message.buffer->send(1, i, i * kSize, kSize);
      } else {
        message.buffer->recv(0, i, i * kSize, kSize);
      }
    }
    for (size_t i = 0; i < kParts; i++) {
      EXPECT_TRUE(context->rank == 0 ? message.buffer->waitSend()
                                     : message.buffer->waitRecv());
    }
    EXPECT_TRUE(message.holds(1));
  });
}

TEST_P(MessagesTest, AShorterMessageLeavesTheRestAlone) {
  run(2, [](const ContextPtr& context) {
    for (const size_t size : {size_t{0}, size_t{10}, size_t{100000}}) {
      if (context->rank == 0) {
        Message message(context, pattern(size, size));
        message.buffer->send(1, 4);
        EXPECT_TRUE(message.buffer->waitSend());
      } else {
        Message message(context, std::vector<char>(300000, 'c'));
        message.buffer->recv(0, 4);
        EXPECT_TRUE(message.buffer->waitRecv());
        EXPECT_EQ(mismatch(size, message.bytes.data(), size), size);
        EXPECT_EQ(std::count(message.bytes.begin() + static_cast<long>(size),
                             message.bytes.end(), 'c'),
                  static_cast<long>(300000 - size));
      }
    }
  });
}

TEST_P(MessagesTest, SeveralThreadsShareAContext) {
  run(2, [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; i++) {
          const size_t size = i % 5 == 0 ? 100000 : 100 * t + i;
          Message out(context, pattern(size + context->rank, size));
          Message in(context, size);
          in.buffer->recv(peer, t);
          out.buffer->send(peer, t);
          EXPECT_TRUE(in.buffer->waitRecv());
          EXPECT_TRUE(out.buffer->waitSend());
          EXPECT_TRUE(in.holds(size + peer));
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
}

TEST_P(MessagesTest, BadArgumentsAreRefusedBeforeAnythingIsSent) {
  run(2, [](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    Message message(context, 100);
    auto& buffer = *message.buffer;
    EXPECT_THROW(buffer.send(2, 1), EnforceNotMet);
    EXPECT_THROW(buffer.send(-1, 1), EnforceNotMet);
    EXPECT_THROW(buffer.recv(2, 1), EnforceNotMet);
    EXPECT_THROW(buffer.recv(std::vector<int>{}, 1), EnforceNotMet);
    EXPECT_THROW(buffer.recv(std::vector<int>{context->rank, context->rank}, 1),
                 EnforceNotMet);
    EXPECT_THROW(buffer.recv(std::vector<int>{peer, 7}, 1), EnforceNotMet);
    EXPECT_THROW(buffer.send(peer, 1, 101), EnforceNotMet);
    EXPECT_THROW(buffer.send(peer, 1, 50, 51), EnforceNotMet);
    EXPECT_THROW(buffer.recv(peer, 1, 1, ~size_t{0} - 1), EnforceNotMet);
    EXPECT_THROW(context->createUnboundBuffer(nullptr, 1), EnforceNotMet);
    auto& pair = *context->getPair(peer);
    EXPECT_THROW(pair.createSendBuffer(1, nullptr, 1), EnforceNotMet);
    EXPECT_THROW(pair.createRecvBuffer(1, nullptr, 1), EnforceNotMet);
    EXPECT_THROW(pair.send(nullptr, 1, 0, 0), EnforceNotMet);
    EXPECT_THROW(pair.recv(nullptr, 1, 0, 0), EnforceNotMet);
    EXPECT_THROW(context->createAndConnectAllPairs(nullptr), EnforceNotMet);
    meet(context);  // and all is well
  });
}

GLOO_CONTRACT_SUITE(MessagesTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
