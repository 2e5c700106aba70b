// Copies that another core reads next: the right bytes and no others, whichever
// way is taken.
#include "gloo/internal/handover_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

constexpr size_t kGuard = 192;

struct Copied {
  std::vector<char> from;
  std::vector<char> to;
};

Copied prepare(size_t bytes) {
  Copied copied{std::vector<char>(bytes + kGuard),
                std::vector<char>(bytes + 2 * kGuard, '\x5a')};
  std::iota(copied.from.begin(), copied.from.end(), '\0');
  return copied;
}

void expectExactly(const Copied& copied, size_t source, size_t target,
                   size_t bytes) {
  const char* const from = copied.from.data() + source;
  const char* const to = copied.to.data() + kGuard / 2 + target;
  EXPECT_TRUE(std::equal(from, from + bytes, to)) << bytes;
  const auto isGuard = [](char c) { return c == '\x5a'; };
  EXPECT_TRUE(std::all_of(copied.to.data(), to, isGuard)) << bytes;
  EXPECT_TRUE(
      std::all_of(to + bytes, copied.to.data() + copied.to.size(), isGuard))
      << bytes;
}

TEST(StreamingCopy, CopiesAnyLengthFromAndToAnywhere) {
  for (const size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 128, 200, 4097}) {
    for (size_t target = 0; target < 65; target++) {
      const size_t source = (target * 7) % 64;
      Copied copied = prepare(bytes);
      streamingCopy(copied.to.data() + kGuard / 2 + target,
                    copied.from.data() + source, bytes);
      expectExactly(copied, source, target, bytes);
    }
  }
}

// More calls than a period has: each way is measured, and one of them used.
TEST(HandoverCopy, CopiesInEveryCallOfAPeriod) {
  HandoverCopy copy;
  for (int call = 0; call < 3 * HandoverCopy::WayTrial::kCalls; call++) {
    const size_t bytes = HandoverCopy::kLeastBytes - 2 +
                         static_cast<size_t>(call % 5) * (call % 64);
    const size_t target = static_cast<size_t>(call) % 64;
    Copied copied = prepare(bytes);
    copy(copied.to.data() + kGuard / 2 + target, copied.from.data() + 3, bytes);
    expectExactly(copied, 3, target, bytes);
  }
}

TEST(HandoverCopy, CopiesWhatIsLongerThanACache) {
  HandoverCopy copy;
  for (int call = 0; call < 50; call++) {  // more than try both ways
    const auto more = static_cast<size_t>(call * call) % 64;
    const size_t bytes = HandoverCopy::kLongBytes + more;
    Copied copied = prepare(bytes);
    copy(copied.to.data() + kGuard / 2 + more, copied.from.data() + 3, bytes);
    expectExactly(copied, 3, more, bytes);
  }
}

TEST(HandoverCopy, NoBytesMayComeFromNowhere) {
  HandoverCopy copy;
  copy(nullptr, nullptr, 0);
  EXPECT_FALSE(copy.streams());
}

}  // namespace
}  // namespace internal
GLOO_NAMESPACE_END
