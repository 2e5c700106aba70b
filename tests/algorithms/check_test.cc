#include "gloo/internal/check.h"

#include <gtest/gtest.h>

#include "algorithms/catalogue.h"
#include "gloo/internal/kernels.h"

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

CheckFields example() {
  CheckFields f;
  f.operation = 1;
  f.type = 11;
  f.reduction = 1;
  f.log2Size = 2;
  f.algorithm = 3;
  f.rootHash = 4;
  f.countHash = 12345;
  return f;
}

TEST(Check, FieldsSurvivePacking) {
  CheckFields f;
  f.operation = 31;
  f.type = 30;
  f.reduction = 13;
  f.log2Size = 12;
  f.algorithm = 61;
  f.sequence = 4094;
  f.rootHash = 253;
  f.countHash = 0xffffe;
  const CheckFields g = CheckFields::unpack(f.pack());
  EXPECT_EQ(f.pack(), g.pack());
  EXPECT_EQ(31, g.operation);
  EXPECT_EQ(30, g.type);
  EXPECT_EQ(13, g.reduction);
  EXPECT_EQ(12, g.log2Size);
  EXPECT_EQ(61, g.algorithm);
  EXPECT_EQ(4094, g.sequence);
  EXPECT_EQ(253, g.rootHash);
  EXPECT_EQ(0xffffeu, g.countHash);
}

void expectDisagreement(CheckFields other, const char* name) {
  const uint64_t mine = example().pack();
  const uint64_t theirs = other.pack();
  EXPECT_FALSE(checksAgree(mine, theirs)) << name;
  EXPECT_FALSE(checksAgree(theirs, mine)) << name;
  const std::string text = describeDisagreement({0, mine}, {7, theirs});
  EXPECT_NE(std::string::npos, text.find(name)) << text;
}

TEST(Check, EachFieldIsComparedAndNamed) {
  CheckFields f = example();
  f.operation = 3;
  expectDisagreement(f, "allreduce on rank 0, broadcast on rank 7");
  f = example();
  f.type = 12;
  expectDisagreement(f, "float32 on rank 0, float64 on rank 7");
  f = example();
  f.reduction = 4;
  expectDisagreement(f, "sum on rank 0, max on rank 7");
  f = example();
  f.log2Size = 3;
  expectDisagreement(f, "element size");
  f = example();
  f.algorithm = 1;
  expectDisagreement(f, "ring on rank 0, recursive_doubling on rank 7");
  f = example();
  f.rootHash = 5;
  expectDisagreement(f, "root: 4 on rank 0, 5 on rank 7");
  f = example();
  f.countHash = 5;
  expectDisagreement(f, "number of elements: 12345 on rank 0, 5 on rank 7");
  f = example();
  f.countHash = CheckFields::hashedCount(5);
  expectDisagreement(f, "number of elements: 12345 on rank 0, others");
}

TEST(Check, WhatIsHashedIsNamedByTheDetails) {
  CheckFields f = example();
  f.countHash = CheckFields::hashedCount(5);
  const uint64_t one = f.pack();
  f.countHash = CheckFields::hashedCount(6);
  const uint64_t other = f.pack();
  EXPECT_FALSE(nameTheField(one, other));
  EXPECT_FALSE(nameTheField(example().pack(), other));
  EXPECT_TRUE(nameTheField(one, one));
  const CheckDetails usual{20, 4096, 2, 1, 4, 3, {10, 10}, {}, {}};
  const auto expectNamed = [&](const char* name, auto change) {
    CheckDetails odd = usual;
    change(odd);
    EXPECT_EQ(name, describeDisagreement({0, one}, {7, other}, &usual, &odd));
  };
  expectNamed("number of elements of rank 1: 10 on rank 0, 11 on rank 7",
              [](CheckDetails& d) { d.counts[1] = 11, d.segmentBytes = 9; });
  expectNamed("number of elements of all ranks: 20 on rank 0, 21 on rank 7",
              [](CheckDetails& d) { d.count = 21; });
  expectNamed("segment size (bytes): 4096 on rank 0, 512 on rank 7",
              [](CheckDetails& d) { d.segmentBytes = 512; });
  expectNamed("base: 2 on rank 0, 4 on rank 7",
              [](CheckDetails& d) { d.base = 4; });
  expectNamed("number of vectors to average: 1 on rank 0, 3 on rank 7",
              [](CheckDetails& d) { d.vectors = 3; });
  expectNamed("element size (bytes): 3 on rank 0, 4 on rank 7",
              [](CheckDetails& d) { d.elementSize = 4; });
  expectNamed("root: 4 on rank 0, 260 on rank 7",
              [](CheckDetails& d) { d.root = 260; });
}

TEST(Check, TheSequenceNumberIsPartOfTheWord) {
  CheckFields f = example();
  f.sequence = 4095;
  EXPECT_EQ(f.pack(), withSequence(example().pack(), 4095));
  EXPECT_EQ(4095, sequenceOf(f.pack()));
  EXPECT_TRUE(checksAgree(f.pack(), example().pack())) << "0: unknown";
  const uint64_t next = withSequence(f.pack(), 1);
  EXPECT_FALSE(checksAgree(f.pack(), next));
  EXPECT_EQ("sequence number of the tag: 4095 on rank 2, 1 on rank 3",
            describeDisagreement({2, f.pack()}, {3, next}));
}

TEST(Check, AWordIsDescribed) {
  EXPECT_EQ("allreduce of 12345 float32, sum, by ring",
            describeCheck(example().pack()));
  CheckFields f = example();
  f.operation = 3;
  f.type = f.reduction = 0;
  f.countHash = CheckFields::hashedCount(0);
  EXPECT_EQ(0u, describeCheck(f.pack()).find(
                    "broadcast elements of up to 4 bytes, root 4"));
}

TEST(Check, TagsAreSharedByTheCollectives) {
  const auto slot = [](uint64_t prefix, uint64_t tag) {
    return prefix << 56 | tag << 24;
  };
  EXPECT_EQ(tagOf(slot(1, 7)), tagOf(slot(0xf, 7) + 3));
  EXPECT_NE(tagOf(slot(1, 7)), tagOf(slot(1, 8)));
  EXPECT_NE(tagOf(slot(1, 7)), tagOf(slot(0x10, 7)));
  EXPECT_NE(tagOf(slot(0xf0, 7)), tagOf(slot(0xf0, 8)));
}

TEST(Check, UnknownTypesAndReductionsAgreeWithAll) {
  CheckFields f = example();
  f.type = 0;
  EXPECT_TRUE(checksAgree(f.pack(), example().pack()));
  f = example();
  f.reduction = 0;
  EXPECT_TRUE(checksAgree(example().pack(), f.pack()));
}

TEST(Check, WordsOfNoCollectiveDisagreeWithThoseOfOne) {
  EXPECT_TRUE(checksAgree(0, 0));
  EXPECT_FALSE(checksAgree(0, example().pack()));
  EXPECT_NE(std::string::npos,
            describeDisagreement({0, 0}, {1, example().pack()})
                .find("no collective"));
}

// Words come from peers: nothing in them may crash the description.
TEST(Check, AnyWordIsDescribed) {
  for (uint64_t i = 0; i < 10000; i++) {
    const uint64_t a = i * 0x9e3779b97f4a7c15;
    const uint64_t b = a ^ (uint64_t{1} << (i % 64));
    EXPECT_FALSE(describeDisagreement({0, a}, {1, b}).empty());
    EXPECT_FALSE(describeCheck(a).empty());
  }
}

}  // namespace
}  // namespace internal
GLOO_NAMESPACE_END
