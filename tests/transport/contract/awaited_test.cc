// Ranks of a collective that wait for each other: who disagrees is told of it,
// who is late is not, although no message has come.
#include "gloo/internal/channel.h"
#include "gloo/internal/check.h"
#include "tests/support/process_group.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::Channel;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kSlot = 9 << 24;  // of a collective with tag 9
constexpr milliseconds kLongTimeout{20000};

uint64_t wordOf(uint8_t operation) {
  internal::CheckFields fields;
  fields.operation = operation;
  return fields.pack();
}

class AwaitedTest : public ContractTest {};

TEST_P(AwaitedTest, RanksThatDisagreeAndOnlyWaitAreTold) {
  run(2, [](const ContextPtr& context) {
    meet(context);
    auto& channel = Channel::of(*context);
    const int peer = 1 - context->rank;
    const auto operation = static_cast<uint8_t>(context->rank + 1);
    internal::Operation receive;
    char byte = 0;
    const auto start = Deadline::Clock::now();
    try {
      const uint64_t word = channel.begin(kSlot, wordOf(operation), nullptr);
      channel.postRecv(receive, peer, kSlot, &byte, 1, word);
      channel.waitUntil([&] { return receive.done(); },
                        Deadline::after(kLongTimeout));
      ADD_FAILURE() << "no error";
    } catch (const MismatchException& e) {
      const std::string text = e.what();
      EXPECT_NE(std::string::npos, text.find("operation: ")) << text;
    }
    EXPECT_LT(Deadline::Clock::now() - start, seconds(1) * slowness());
    if (receive.pending()) {
      channel.cancel(receive);
    }
  });
}

// The one that waits says what for, again and again: nothing is wrong with
// that, neither before the other one begins nor after it has gone on.
TEST_P(AwaitedTest, WhoIsLateIsNotAnError) {
  run(2, [](const ContextPtr& context) {
    meet(context);
    auto& channel = Channel::of(*context);
    char byte = 0;
    for (int round = 0; round < 2; round++) {
      internal::Operation operation;
      if (context->rank == 0) {
        const uint64_t word = channel.begin(kSlot, wordOf(1), nullptr);
        channel.postRecv(operation, 1, kSlot, &byte, 1, word);
      } else {
        // Drives meanwhile, and hears.
        EXPECT_FALSE(channel.waitUntil([] { return false; },
                                       Deadline::after(milliseconds(400))));
        byte = static_cast<char>('a' + round);
        const uint64_t word = channel.begin(kSlot, wordOf(1), nullptr);
        channel.postSend(operation, 0, kSlot, &byte, 1, word);
      }
      ASSERT_TRUE(channel.waitUntil([&] { return operation.done(); },
                                    Deadline::after(kLongTimeout)));
      EXPECT_EQ('a' + round, byte);
    }
    EXPECT_EQ(nullptr, channel.failure());
    meet(context);
  });
}

GLOO_CONTRACT_SUITE(AwaitedTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
