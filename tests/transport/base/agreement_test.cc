#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/usage.h"
#include "tests/transport/base/agreement_words.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {
namespace {

using internal::CheckFields;
using internal::sequenceOf;
using internal::withSequence;

TEST(AgreementTest, OperationsOfATagAreNumbered) {
  Agreement agreement(0);
  const uint64_t word = wordOf(1);
  for (int round = 0; round < 3; round++) {
    for (uint16_t number = 1; number <= CheckFields::kMaxSequence; number++) {
      const uint64_t said = begin(agreement, kTag, word);
      ASSERT_EQ(withSequence(word, number), said);
      EXPECT_FALSE(agreement.heard(1, kTag, said, true).has_value());
    }
  }
  EXPECT_EQ(1, sequenceOf(begin(agreement, kTag + 1, word)));
}

TEST(AgreementTest, AWordOfTheRunningOperationIsCompared) {
  Agreement agreement(0);
  const uint64_t mine = begin(agreement, kTag, wordOf(1));
  const uint64_t theirs = withSequence(wordOf(2), 1);
  const Conflict conflict = agreement.heard(5, kTag, theirs, true);
  ASSERT_TRUE(conflict.has_value());
  EXPECT_EQ(0, conflict->one.rank);
  EXPECT_EQ(mine, conflict->one.word);
  EXPECT_EQ(5, conflict->other.rank);
  EXPECT_EQ(theirs, conflict->other.word);
}

TEST(AgreementTest, AWordOfAFinishedOperationIsCompared) {
  Agreement agreement(0);
  for (uint8_t i = 1; i <= Agreement::kRemembered; i++) {
    begin(agreement, kTag, wordOf(i));
  }
  for (uint8_t i = 1; i <= Agreement::kRemembered; i++) {
    const uint64_t same = withSequence(wordOf(i), i);
    EXPECT_FALSE(agreement.heard(1, kTag, same, false).has_value()) << int{i};
    const uint64_t other = withSequence(wordOf(20), i);
    EXPECT_TRUE(agreement.heard(1, kTag, other, false).has_value()) << int{i};
  }
}

// All messages of an operation have come when it ends.
TEST(AgreementTest, AMessageOfAFinishedOperationIsOneTooMany) {
  Agreement agreement(0);
  const uint64_t first = begin(agreement, kTag, wordOf(1));
  const uint64_t second = begin(agreement, kTag, wordOf(1));
  EXPECT_FALSE(agreement.heard(1, kTag, first, false).has_value());
  const Conflict conflict = agreement.heard(1, kTag, first, true);
  ASSERT_TRUE(conflict.has_value());
  EXPECT_EQ(second, conflict->one.word);
}

TEST(AgreementTest, AWordThatIsAheadIsComparedWhenItsTimeComes) {
  for (const uint16_t ahead : {1, 2, 8, 9, 100, 4000}) {
    Agreement agreement(0);
    const uint64_t theirs = withSequence(wordOf(2), ahead);
    EXPECT_FALSE(agreement.heard(3, kTag, theirs, true).has_value());
    EXPECT_FALSE(agreement.heard(3, kTag, theirs, true).has_value());
    for (uint16_t i = 1; i < ahead; i++) {
      begin(agreement, kTag, wordOf(1));
    }
    Conflict conflict;
    agreement.begin(kTag, wordOf(1), &conflict);
    ASSERT_TRUE(conflict.has_value()) << ahead;
    EXPECT_EQ(0, conflict->one.rank);
    EXPECT_EQ(3, conflict->other.rank);
    EXPECT_EQ(theirs, conflict->other.word);
  }
}

TEST(AgreementTest, OthersThatContradictEachOtherAreNoticedAtOnce) {
  Agreement agreement(0);
  agreement.heard(3, kTag, withSequence(wordOf(2), 1), true);
  const Conflict conflict =
      agreement.heard(4, kTag, withSequence(wordOf(1), 1), true);
  ASSERT_TRUE(conflict.has_value());
  EXPECT_EQ(3, conflict->one.rank);
  EXPECT_EQ(4, conflict->other.rank);
}

TEST(AgreementTest, TagsAreApart) {
  Agreement agreement(0);
  begin(agreement, kTag, wordOf(1));
  const uint64_t theirs = withSequence(wordOf(2), 1);
  EXPECT_FALSE(agreement.heard(1, kTag + 1, theirs, true).has_value());
  begin(agreement, kTag + 1, wordOf(2));
}

// What a rank has forgotten of a tag is never a reason to complain.
TEST(AgreementTest, CountsOutliveTheirWords) {
  Agreement agreement(0);
  begin(agreement, kTag, wordOf(1));
  const uint64_t second = begin(agreement, kTag, wordOf(1));
  for (uint64_t tag = 1000; tag < 1000 + 2 * Agreement::kTags; tag++) {
    EXPECT_EQ(1, sequenceOf(begin(agreement, tag, wordOf(1))));
  }
  EXPECT_EQ(Agreement::kTags, agreement.tags());
  EXPECT_FALSE(agreement.heard(1, kTag, second, true).has_value());
  EXPECT_EQ(3, sequenceOf(begin(agreement, kTag, wordOf(1))));
  EXPECT_TRUE(
      agreement.heard(1, kTag, withSequence(wordOf(2), 3), true).has_value());
}

// Whose counts are no ranges: of two contexts that take turns each has every
// second tag.
TEST(AgreementTest, NewTagsAreComparedHoweverManyThereWere) {
  for (const bool isOdd : {true, false}) {
    Agreement agreement(0);
    uint64_t tag = 1;
    for (int i = 0; i < 70000; i++) {
      for (int times = isOdd || i % 2 == 0 ? 1 : 3; times > 0; times--) {
        begin(agreement, tag, wordOf(1));
      }
      tag += isOdd ? 2 : 1;
    }
    EXPECT_EQ(1, sequenceOf(begin(agreement, tag, wordOf(1))));
    EXPECT_TRUE(
        agreement.heard(1, tag, withSequence(wordOf(2), 1), true).has_value());
  }
}

TEST(AgreementTest, HowManyWereBegunIsAskedForWithoutATrace) {
  Agreement agreement(0);
  begin(agreement, kTag, wordOf(1));
  begin(agreement, kTag, wordOf(1));
  for (uint64_t tag = 1000; tag < 1000 + 2 * Agreement::kTags; tag++) {
    begin(agreement, tag, wordOf(1));
    const size_t tags = agreement.tags();
    EXPECT_EQ(2u, agreement.begun(kTag));
    EXPECT_EQ(1u, agreement.begun(tag));
    EXPECT_EQ(0u, agreement.begun(tag + 1));
    EXPECT_EQ(tags, agreement.tags());
  }
}

TEST(AgreementTest, ObjectsTagsDoNotDisplaceCallers) {
  constexpr uint64_t kOwn = uint64_t{internal::kFirstOwnPrefix} << 32;
  Agreement agreement(0);
  begin(agreement, kTag, wordOf(1));
  for (uint64_t i = 0; i < 70000; i++) {
    begin(agreement, kOwn + 2 * i, wordOf(1));
  }
  EXPECT_EQ(2, sequenceOf(begin(agreement, kTag, wordOf(1))));
  EXPECT_EQ(1, sequenceOf(begin(agreement, kTag + 1, wordOf(1))));
}

// As many objects, one after the other or in some order.
TEST(AgreementTest, MoreTagsThanAreRememberedAllocateNothing) {
  Agreement agreement(0);
  std::vector<uint64_t> tags(600);
  std::iota(tags.begin(), tags.end(), 1);
  for (const bool inOrder : {true, false}) {
    if (!inOrder) {
      std::shuffle(tags.begin(), tags.end(), std::mt19937(1));
    }
    const auto round = [&] {
      for (const uint64_t tag : tags) {
        begin(agreement, tag, wordOf(1));
      }
    };
    for (int i = 0; i < 3; i++) {
      round();
    }
    const uint64_t before = test::allocations();
    for (int i = 0; i < 10; i++) {
      round();
    }
    EXPECT_EQ(0u, test::allocations() - before) << inOrder;
  }
}

TEST(AgreementTest, OperationsThatAreOnlyCountedAreAsThoseThatBegin) {
  for (const uint64_t times : {1, 7, 8, 9, 100, 70000}) {
    Agreement counted(0);
    Agreement begun(0);
    for (Agreement* agreement : {&counted, &begun}) {
      begin(*agreement, kTag, wordOf(2));
    }
    Conflict conflict;
    counted.beginAgain(kTag, wordOf(1), times, &conflict);
    EXPECT_FALSE(conflict.has_value());
    for (uint64_t i = 0; i < times; i++) {
      begin(begun, kTag, wordOf(1));
    }
    EXPECT_EQ(begun.begun(kTag), counted.begun(kTag));
    const uint64_t next = begin(begun, kTag, wordOf(3));
    EXPECT_EQ(next, begin(counted, kTag, wordOf(3)));
    // Of those that were last, the words are known.
    for (uint16_t back = 0; back < Agreement::kRemembered; back++) {
      const auto cycle = CheckFields::kMaxSequence;
      const auto sequence = static_cast<uint16_t>(
          (sequenceOf(next) + cycle - 1 - back) % cycle + 1);
      for (const uint8_t operation : {1, 2, 3}) {
        const uint64_t said = withSequence(wordOf(operation), sequence);
        EXPECT_EQ(begun.heard(1, kTag, said, false).has_value(),
                  counted.heard(1, kTag, said, false).has_value())
            << times << " " << back << " " << int{operation};
      }
    }
  }
}

TEST(AgreementTest, AWordThatIsAheadIsComparedWithWhatIsCounted) {
  for (const uint16_t ahead : {1, 2, 20, 100}) {
    Agreement agreement(0);
    EXPECT_FALSE(agreement.isAhead(kTag));
    agreement.heard(1, kTag, withSequence(wordOf(2), ahead), true);
    EXPECT_TRUE(agreement.isAhead(kTag));
    Conflict conflict;
    agreement.beginAgain(kTag, wordOf(1), ahead - 1, &conflict);
    EXPECT_FALSE(conflict.has_value());
    EXPECT_TRUE(agreement.isAhead(kTag));
    agreement.beginAgain(kTag, wordOf(1), 1000, &conflict);
    ASSERT_TRUE(conflict.has_value());
    EXPECT_EQ(ahead, sequenceOf(conflict->one.word));
    EXPECT_FALSE(agreement.isAhead(kTag));
  }
}

TEST(AgreementTest, WordsThatAreAheadAreNotForgotten) {
  Agreement agreement(0);
  agreement.heard(1, kTag, withSequence(wordOf(2), 1), true);
  for (uint64_t tag = 1000; tag < 1000 + 2 * Agreement::kTags; tag++) {
    begin(agreement, tag, wordOf(1));
  }
  Conflict conflict;
  agreement.begin(kTag, wordOf(1), &conflict);
  EXPECT_TRUE(conflict.has_value());
}

// Ranks whose threads take the tags in different orders agree all the same.
// The root of many small broadcasts may be ahead by more than a cycle of the
// sequence, and another peer by nothing.
TEST(AgreementTest, APeerMayBeAheadByCycles) {
  constexpr uint64_t kOperations = 3 * CheckFields::kMaxSequence;
  const auto said = [](int peer, uint64_t number) {
    const bool wrong = peer == 1 && number == kOperations - 5;
    const auto before = (number - 1) % CheckFields::kMaxSequence;
    return withSequence(wordOf(wrong ? 2 : 1),
                        internal::sequenceAfter(static_cast<uint16_t>(before)));
  };
  Agreement agreement(0);
  for (uint64_t i = 0; i < 50; i++) {
    begin(agreement, kTag, wordOf(1));
  }
  for (uint64_t number = 45; number <= kOperations; number++) {
    ASSERT_FALSE(agreement.heard(1, kTag, said(1, number), false).has_value())
        << number;
  }
  for (uint64_t number = 51; number <= kOperations; number++) {
    const bool contradicted = number == kOperations - 5;
    ASSERT_EQ(contradicted,
              agreement.heard(2, kTag, said(2, number), true).has_value())
        << number;
    Conflict conflict;
    agreement.begin(kTag, wordOf(1), &conflict);
    ASSERT_EQ(contradicted, conflict.has_value()) << number;
  }
}

// Each word of a peer's may go on by nearly a cycle.
TEST(AgreementTest, APeerCannotTakeAllMemory) {
  Agreement agreement(0);
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  for (int i = 0; i < 1000; i++) {
    const auto sequence =
        static_cast<uint16_t>(CheckFields::kMaxSequence - 1 - i);
    agreement.heard(1, kTag, withSequence(wordOf(1), sequence), false);
    agreement.heard(1, kTag + 1 + static_cast<uint64_t>(i),
                    withSequence(wordOf(1), CheckFields::kMaxSequence - 1),
                    false);
  }
  const size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
  EXPECT_LT(after, before + (size_t{64} << 20));
}

TEST(AgreementTest, RanksInDifferentOrdersAgree) {
  std::mt19937 random(1);
  std::vector<std::unique_ptr<Agreement>> ranks;
  for (int rank = 0; rank < 3; rank++) {
    ranks.push_back(std::make_unique<Agreement>(rank));
  }
  std::vector<uint64_t> tags;
  for (uint64_t i = 0; i < 20000; i++) {
    tags.push_back(i % 3 == 0 ? random() % 2000 : 5000 + i);
  }
  std::vector<std::vector<uint64_t>> orders(3, tags);
  for (auto& order : orders) {
    for (size_t i = 0; i + 5 < order.size(); i++) {
      std::swap(order[i], order[i + random() % 5]);
    }
  }
  // `said[rank][i]` is told to the others a little later.
  for (size_t i = 0; i < tags.size(); i++) {
    for (size_t rank = 0; rank < 3; rank++) {
      const uint64_t tag = orders[rank][i];
      const uint64_t said =
          begin(*ranks[rank], tag, wordOf(static_cast<uint8_t>(1 + tag % 13)));
      for (size_t other = 0; other < 3; other++) {
        if (other != rank) {
          ASSERT_FALSE(ranks[other]
                           ->heard(static_cast<int>(rank), tag, said, false)
                           .has_value())
              << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace transport::base
GLOO_NAMESPACE_END
