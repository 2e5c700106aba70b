// Agreement about operations by part: this is rank 1, with 5 elements for rank
// 0 and 7 from it.
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/usage.h"
#include "tests/transport/base/agreement_words.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using internal::sequenceOf;
using internal::withSequence;

constexpr uint8_t kByPart = internal::kAlltoallvOperation;

internal::CheckDetailsPtr someParts() {
  auto details = std::make_shared<internal::CheckDetails>();
  details->sent = {5, 0, 0};
  details->received = {7, 0, 0};
  return details;
}

// Of rank 0's words: about what it sends to rank 1, or expects from it.
uint64_t partWord(uint64_t word, bool sends, uint64_t count) {
  internal::CheckDetails theirs;
  (sends ? theirs.sent : theirs.received) = {0, count};
  return internal::withPart(word, {0, 1, sends}, &theirs);
}

void expectParts(Agreement& agreement, uint64_t said) {
  const auto heard = [&](bool sends, uint64_t count) {
    return agreement.heard(0, kTag, partWord(said, sends, count), sends);
  };
  EXPECT_FALSE(heard(true, 7).has_value());
  EXPECT_FALSE(heard(false, 5).has_value());
  for (const uint64_t count : {uint64_t{0}, uint64_t{14}, uint64_t{1} << 40}) {
    EXPECT_TRUE(heard(true, count).has_value()) << count;
    EXPECT_TRUE(heard(false, count).has_value()) << count;
  }
  const Conflict conflict = heard(true, 14);
  ASSERT_TRUE(conflict.has_value());
  EXPECT_EQ(
      "number of elements from rank 0 to rank 1: 7 on rank 1, 14 on rank "
      "0",
      internal::describeDisagreement(conflict->one, conflict->other));
}

TEST(AgreementTest, APartIsComparedWithWhatThisRankHas) {
  Agreement agreement(1);
  Conflict conflict;
  const auto parts = someParts();
  const uint64_t said =
      agreement.begin(kTag, wordOf(kByPart), &conflict, parts);
  expectParts(agreement, said);
  // Also when others have followed.
  agreement.begin(kTag, wordOf(1), &conflict);
  agreement.begin(kTag + 1, wordOf(1), &conflict);
  EXPECT_TRUE(
      agreement.heard(0, kTag, partWord(said, true, 14), true).has_value());
  EXPECT_FALSE(
      agreement.heard(0, kTag, partWord(said, false, 5), false).has_value());
  EXPECT_EQ(7u, agreement.detailsOf(kTag, partWord(said, true, 7), 0)->count);
}

// Which operations the others are ahead of differs from run to run.
TEST(AgreementTest, PartsThatComeEarlyAllocateNothing) {
  Agreement agreement(1);
  Conflict conflict;
  const auto parts = someParts();
  uint64_t said = agreement.begin(kTag, wordOf(kByPart), &conflict, parts);
  const uint64_t before = test::allocations();
  for (int i = 0; i < 100; i++) {
    said = withSequence(said, internal::sequenceAfter(sequenceOf(said)));
    const auto hear = [&](bool sends, uint64_t count) {
      agreement.heard(0, kTag, partWord(said, sends, count), sends);
    };
    hear(false, 5);
    hear(true, 7);
    agreement.begin(kTag, wordOf(kByPart), &conflict, parts);
    ASSERT_FALSE(conflict.has_value());
  }
  const uint64_t after = test::allocations();
  EXPECT_EQ(2u * 100, after - before);  // partWord()'s own
}

TEST(AgreementTest, APartThatComesEarlyIsComparedLater) {
  for (const uint64_t count : {7, 14}) {
    Agreement agreement(1);
    const uint64_t first = withSequence(wordOf(kByPart), 1);
    const uint64_t second = withSequence(wordOf(kByPart), 2);
    for (const uint64_t word :
         {partWord(first, false, 5), partWord(second, true, count),
          partWord(first, true, 7), partWord(first, true, 7)}) {
      EXPECT_FALSE(agreement.heard(0, kTag, word, true).has_value());
    }
    Conflict conflict;
    agreement.begin(kTag, wordOf(kByPart), &conflict, someParts());
    EXPECT_FALSE(conflict.has_value());
    agreement.begin(kTag, wordOf(kByPart), &conflict, someParts());
    EXPECT_EQ(count == 14, conflict.has_value());
  }
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
