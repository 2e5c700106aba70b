// What is copied of a caller's vectors, byte by byte.
#include "algorithms/footprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/algorithms/jobs.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// For each byte of a memory.
class Marks {
 public:
  Marks(const Program& program, Memory memory) {
    for (const Action& action : program.actions) {
      const bool receives = action.kind == ActionKind::kRecv;
      if (!receives && action.source.memory == memory) {
        read(action.source.offset, action.bytes);
      }
      if (action.kind == ActionKind::kReduce &&
          action.staged.memory == memory) {
        read(action.staged.offset, action.bytes);
      }
      if (action.kind != ActionKind::kSend && action.target.memory == memory) {
        mark(written, action.target.offset, action.bytes);
      }
    }
  }

  std::vector<bool> needed;
  std::vector<bool> written;

 private:
  static void mark(std::vector<bool>& marks, size_t begin, size_t bytes) {
    marks.resize(std::max(marks.size(), begin + bytes));
    std::fill_n(marks.begin() + static_cast<ptrdiff_t>(begin), bytes, true);
  }
  void read(size_t begin, size_t bytes) {
    for (size_t i = begin; i < begin + bytes; i++) {
      if (i >= written.size() || !written[i]) {
        mark(needed, i, 1);
      }
    }
  }
};

std::vector<bool> marksOf(const std::vector<Span>& pieces) {
  std::vector<bool> marks;
  for (const Span& piece : pieces) {
    // Something is between it and the one before.
    EXPECT_TRUE(marks.empty() || piece.begin > marks.size());
    EXPECT_LT(piece.begin, piece.end);
    marks.resize(piece.begin);
    marks.resize(piece.end, true);
  }
  return marks;
}

void expectFootprint(const Program& program, Memory memory) {
  const Marks marks(program, memory);
  const Footprint print = footprintOf(program, memory);
  EXPECT_EQ(marksOf(print.needed), marks.needed);
  EXPECT_EQ(marksOf(print.written), marks.written);
  EXPECT_EQ(print.end, std::max(marks.needed.size(), marks.written.size()));
}

TEST(Footprint, IsWhatAProgramReadsFirstAndWhatItWrites) {
  size_t inPieces = 0;
  for (const AlgorithmInfo& info : catalogue()) {
    for (int size = 2; size <= 9; size++) {
      for (int variant = 0; variant < verify::kVariants; variant++) {
        const verify::Job job = verify::makeJob(
            info, size, (size / 2) % verify::rootsOf(info, size), variant);
        if (!info.offers(job.setting(0))) {
          continue;
        }
        for (const Program& program : verify::programsOf(job)) {
          for (const Memory memory : {Memory::kInput, Memory::kOutput}) {
            expectFootprint(program, memory);
            inPieces += footprintOf(program, memory).written.size() > 1;
          }
        }
        ASSERT_FALSE(testing::Test::HasFailure()) << job.str();
      }
    }
  }
  EXPECT_GT(inPieces, 0u);
}

TEST(Footprint, OnlyMessagesAboveALengthCount) {
  Program program;
  Action send;
  send.kind = ActionKind::kSend;
  send.bytes = 100;
  Action recv;
  recv.kind = ActionKind::kRecv;
  recv.bytes = 50;
  recv.target.memory = Memory::kOutput;
  program.actions = {send, recv};
  EXPECT_EQ(extentOfMessages(program, Memory::kInput, 99).messages, 1u);
  EXPECT_EQ(extentOfMessages(program, Memory::kInput, 100).messages, 0u);
  EXPECT_EQ(extentOfMessages(program, Memory::kOutput, 49).messages, 1u);
  EXPECT_EQ(extentOfMessages(program, Memory::kOutput, 50).messages, 0u);
  EXPECT_EQ(extentOfMessages(program, Memory::kScratch, 0).messages, 0u);
}

}  // namespace
}  // namespace algorithms
GLOO_NAMESPACE_END
