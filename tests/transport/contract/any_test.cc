// Receives that take a message from any of several ranks.
#include <vector>

#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class AnyTest : public ContractTest {};

// Rank 1's messages are more than rank 0 takes before rank 2's.
TEST_P(AnyTest, ReceiveFromAnyTakesTurns) {
  run(3, [](const ContextPtr& context) {
    constexpr int kMany = 20;
    if (context->rank != 0) {
      Message message(context, 8);
      message.buffer->send(0, 5);
      signal(context, 0);  // behind it
      const int more = context->rank == 1 ? kMany - 1 : 0;
      for (int i = 0; i < more; i++) {
        message.buffer->send(0, 5);
      }
      for (int i = 0; i <= more; i++) {
        EXPECT_TRUE(message.buffer->waitSend());
      }
      return;
    }
    awaitSignal(context, 1);
    awaitSignal(context, 2);
    int turn = -1;
    for (int i = 0; i <= kMany; i++) {
      Message message(context, 8);
      int rank = -1;
      message.buffer->recv({1, 2}, 5);
      EXPECT_TRUE(message.buffer->waitRecv(&rank));
      turn = rank == 2 ? i : turn;
    }
    EXPECT_TRUE(turn == 0 || turn == 1) << turn;
  });
}

TEST_P(AnyTest, ReceiveFromAnyTakesWhoeverSends) {
  for (const size_t size : {size_t{8}, size_t{200000}}) {
    run(4, [size](const ContextPtr& context) {
      constexpr int kEach = 20;
      if (context->rank != 0) {
        for (int i = 0; i < kEach; i++) {
          Message message(context, pattern(context->rank, size));
          message.buffer->send(0, 5);
          EXPECT_TRUE(message.buffer->waitSend());
        }
        awaitSignal(context, 0);
        return;
      }
      std::vector<int> counts(4);
      for (int i = 0; i < 3 * kEach; i++) {
        Message message(context, size);
        // PyTorch's list of all ranks is the second.
        message.buffer->recv(i % 2 == 0
                                 ? std::vector<int>{1, 2, 3}
                                 : std::vector<int>{0, 0, 0, 0, 0, 1, 2, 3},
                             5);
        int rank = -1;
        EXPECT_TRUE(message.buffer->waitRecv(&rank));
        ASSERT_TRUE(rank >= 1 && rank <= 3) << rank;
        counts[rank]++;
        EXPECT_TRUE(message.holds(rank));
      }
      EXPECT_EQ(counts, (std::vector<int>{0, kEach, kEach, kEach}));
      for (int peer = 1; peer < 4; peer++) {
        signal(context, peer);
      }
    });
  }
}

// Receives of one slot take the messages of a rank in the order in which they
// were started, whether they name the rank or not.
TEST_P(AnyTest, NamedAndAnyReceivesShareASlot) {
  for (const size_t size : {size_t{8}, size_t{200000}}) {
    run(3, [size](const ContextPtr& context) {
      const auto send = [&](uint64_t seed) {
        Message message(context, pattern(seed, size));
        message.buffer->send(0, 6);
        EXPECT_TRUE(message.buffer->waitSend());
      };
      if (context->rank == 0) {
        Message any(context, size);
        Message named(context, size);
        Message last(context, size);
        any.buffer->recv(std::vector<int>{1, 2}, 6);
        named.buffer->recv(1, 6);
        last.buffer->recv(std::vector<int>{2, 1}, 6);
        signal(context, 2);
        int rank = -1;
        EXPECT_TRUE(any.buffer->waitRecv(&rank));
        EXPECT_EQ(rank, 2);
        EXPECT_TRUE(any.holds(20));
        signal(context, 1);
        EXPECT_TRUE(named.buffer->waitRecv(&rank));
        EXPECT_EQ(rank, 1);
        EXPECT_TRUE(named.holds(10));
        EXPECT_TRUE(last.buffer->waitRecv(&rank));
        EXPECT_EQ(rank, 1);
        EXPECT_TRUE(last.holds(11));
      } else if (context->rank == 2) {
        awaitSignal(context, 0);
        send(20);
      } else {
        awaitSignal(context, 0);
        send(10);
        send(11);
      }
      meet(context);
    });
  }
}

GLOO_CONTRACT_SUITE(AnyTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
