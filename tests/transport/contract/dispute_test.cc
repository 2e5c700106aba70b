// Ranks that disagree in what check words only have a hash of: all are told
// what it is on both ranks.
#include "gloo/internal/channel.h"
#include "gloo/internal/check.h"
#include "tests/support/process_group.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::Channel;
using internal::CheckDetails;
using internal::CheckDetailsPtr;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kSlot = 9 << 24;  // of a collective with tag 9
constexpr milliseconds kLongTimeout{20000};

// Of an allreduce in segments of so many bytes.
uint64_t wordOf(uint32_t segment) {
  internal::CheckFields fields;
  fields.operation = 1;
  fields.algorithm = 3;
  fields.countHash = internal::CheckFields::hashedCount(segment);
  return fields.pack();
}

CheckDetailsPtr detailsOf(uint32_t segment) {
  CheckDetails details;
  details.count = 100;
  details.segmentBytes = segment;
  return std::make_shared<CheckDetails>(details);
}

class DisputeTest : public ContractTest {};

// begin() and a byte to `to`; then waits for one from `from`, in vain.
void expectMismatch(const ContextPtr& context, uint32_t segment,
                    const CheckDetailsPtr& details, int to, int from,
                    const std::vector<std::string>& parts) {
  auto& channel = Channel::of(*context);
  internal::Operation send;
  internal::Operation receive;
  char out = 1;
  char in = 0;
  const auto start = Deadline::Clock::now();
  try {
    const uint64_t word = channel.begin(kSlot, wordOf(segment), details);
    if (to >= 0) {
      channel.postSend(send, to, kSlot, &out, 1, word);
    }
    channel.postRecv(receive, from, kSlot, &in, 1, word);
    channel.waitUntil([&] { return receive.done(); },
                      Deadline::after(kLongTimeout));
    ADD_FAILURE() << "no error";
  } catch (const MismatchException& e) {
    const std::string text = e.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string::npos, text.find(part)) << text;
    }
  }
  EXPECT_LT(Deadline::Clock::now() - start, seconds(1) * slowness());
  for (internal::Operation* op : {&send, &receive}) {
    if (op->pending()) {
      channel.cancel(*op);
    }
  }
}

TEST_P(DisputeTest, BothAreTold) {
  for (const int sender : {0, 1}) {  // or both
    run(2, [sender](const ContextPtr& context) {
      meet(context);
      const int peer = 1 - context->rank;
      const uint32_t segment = context->rank == 0 ? 4096 : 512;
      expectMismatch(
          context, segment, detailsOf(segment),
          sender == 1 || context->rank == 0 ? peer : -1, peer,
          {"segment size (bytes): ", "4096 on rank 0", "512 on rank 1"});
    });
  }
}

TEST_P(DisputeTest, WhoKnowsNoDetailsIsNamed) {
  run(2, [](const ContextPtr& context) {
    meet(context);
    const int peer = 1 - context->rank;
    const bool knows = context->rank == 0;
    expectMismatch(context, knows ? 4096 : 512,
                   knows ? detailsOf(4096) : nullptr, peer, peer,
                   {"number of elements: ", "(hash 512) on rank 1"});
  });
}

// Rank 2 hears of both before it begins.
TEST_P(DisputeTest, AThirdRankLeavesItToThem) {
  run(3, [](const ContextPtr& context) {
    meet(context);
    if (context->rank < 2) {
      const uint32_t segment = context->rank == 0 ? 4096 : 512;
      expectMismatch(
          context, segment, detailsOf(segment), 2, 1 - context->rank,
          {"segment size (bytes): ", "4096 on rank 0", "512 on rank 1"});
      return;
    }
    try {
      Channel::of(*context).waitUntil([] { return false; },
                                      Deadline::after(kLongTimeout));
      ADD_FAILURE() << "no error";
    } catch (const MismatchException& e) {
      const std::string text = e.what();
      EXPECT_NE(std::string::npos, text.find("4096 on rank 0")) << text;
      EXPECT_NE(std::string::npos, text.find("512 on rank 1")) << text;
    }
  });
}

// Who has given up an operation begins no other one in its place. (The other
// rank may hear of it while it still meets.)
TEST_P(DisputeTest, EndsWithWhatIsKnownWhenThisRankGivesUp) {
  run(2, [](const ContextPtr& context) {
    auto& channel = Channel::of(*context);
    if (context->rank == 1) {
      const auto wait = [&] {
        meet(context);
        channel.waitUntil([] { return false; }, Deadline::after(kLongTimeout));
      };
      EXPECT_THROW(wait(), MismatchException);
      return;
    }
    meet(context);
    channel.contradict(
        {kSlot, {0, wordOf(4096)}, detailsOf(4096), {1, wordOf(512)}});
    auto cause = std::make_shared<internal::Cause>();
    cause->foundBy = cause->culprit = 0;
    cause->text = "a reduce function threw";
    channel.fail(cause);
    const internal::CausePtr failure = channel.failure();
    ASSERT_NE(nullptr, failure);
    EXPECT_EQ(internal::Cause::Kind::kMismatch, failure->kind);
  });
}

// Success and failure take the same messages as ever: what is told is told of
// a disagreement only.
TEST_P(DisputeTest, OfThoseThatAgreeThereIsNone) {
  run(2, [](const ContextPtr& context) {
    meet(context);
    auto& channel = Channel::of(*context);
    for (int round = 0; round < 3; round++) {
      internal::Operation send;
      internal::Operation receive;
      char out = 1;
      char in = 0;
      const uint64_t word = channel.begin(kSlot, wordOf(4096), detailsOf(4096));
      channel.postSend(send, 1 - context->rank, kSlot, &out, 1, word);
      channel.postRecv(receive, 1 - context->rank, kSlot, &in, 1, word);
      ASSERT_TRUE(
          channel.waitUntil([&] { return send.done() && receive.done(); },
                            Deadline::after(kLongTimeout)));
      EXPECT_EQ(1, in);
    }
    meet(context);
    EXPECT_EQ(nullptr, channel.failure());
  });
}

GLOO_CONTRACT_SUITE(DisputeTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
