// What a message costs that is shorter than its receive: a write that nobody is
// told of, and a frame with its length.
#include <gtest/gtest.h>

#include "tests/transport/ibverbs/counts.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using VerbsShortMessageTest = CountsTest;

constexpr size_t kSent = size_t{100} << 10;

TEST_F(VerbsShortMessageTest, ItsWriteAndItsFrameLeaveWithOneDoorbell) {
  run([](Rank& rank) {
    Message out(rank.context, pattern(1, kSent));
    Message in(rank.context, 2 * kSent);
    for (int round = 0; round < 3; round++) {
      const Counted counted = rank.count([&] {
        if (!rank.sends()) {
          in.buffer->recv(0, kSlot);
        }
        rank.meet();
        if (rank.sends()) {
          out.buffer->send(1, kSlot);
          EXPECT_TRUE(out.buffer->waitSend());
        } else {
          EXPECT_TRUE(in.buffer->waitRecv());
          EXPECT_EQ(mismatch(1, in.bytes.data(), kSent), kSent);
        }
      });
      if (rank.sends()) {
        EXPECT_EQ(counted.own.posts, 2u);
        EXPECT_EQ(counted.own.doorbells, 1u);
      }
    }
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
