// Copies: the right bytes and no others, whichever way is taken.
#include "gloo/internal/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

GLOO_NAMESPACE_BEGIN
namespace internal {
namespace {

constexpr size_t kPage = 4096;
constexpr char kGuard = '\x5a';

// Memory that begins so many bytes into a page.
class Memory {
 public:
  Memory(size_t bytes, size_t intoPage) : memory_(bytes + 3 * kPage, kGuard) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data());
    begin_ = memory_.data() + (-at % kPage) + kPage + intoPage;
  }

  char* begin() { return begin_; }
  bool isGuardedBut(size_t bytes) const {
    const auto isGuard = [](char c) { return c == kGuard; };
    const char* const begin = memory_.data();
    const char* const copied = begin_;
    return std::all_of(begin, copied, isGuard) &&
           std::all_of(copied + bytes, begin + memory_.size(), isGuard);
  }

 private:
  std::vector<char> memory_;
  char* begin_;
};

void expectCopied(size_t bytes, size_t source, size_t target) {
  Memory from(bytes, source);
  std::iota(from.begin(), from.begin() + bytes, '\1');
  Memory to(bytes, target);
  copyMemory(to.begin(), from.begin(), bytes);
  EXPECT_TRUE(std::equal(from.begin(), from.begin() + bytes, to.begin()))
      << bytes << " bytes, " << source << " to " << target;
  EXPECT_TRUE(to.isGuardedBut(bytes))
      << bytes << " bytes, " << source << " to " << target;
}

TEST(CopyMemory, CopiesWhereTheTargetIsLittleBehindTheSourceInAPage) {
  for (const size_t bytes : {2047, 2048, 2049, 4096, 5000, 8191, 70001}) {
    for (const size_t source : {0, 1, 16, 60, 4095}) {
      for (const size_t behind : {0, 1, 16, 31, 63, 64, 4095}) {
        expectCopied(bytes, source, (source + behind) % kPage);
      }
    }
  }
}

TEST(CopyMemory, CopiesNothing) {
  copyMemory(nullptr, nullptr, 0);
  expectCopied(0, 0, 16);
}

#if defined(__x86_64__) && !GLOO_SANITIZED
TEST(CopyMemory, KnowsWhatIsLittleBehindInAPage) {
  Memory memory(2 * kPage, 0);
  const char* const begin = memory.begin();
  EXPECT_FALSE(isAliased(begin, begin));
  EXPECT_TRUE(isAliased(begin + 1, begin));
  EXPECT_TRUE(isAliased(begin + kPage + 63, begin));
  EXPECT_FALSE(isAliased(begin + 64, begin));
  EXPECT_FALSE(isAliased(begin, begin + 16));
  EXPECT_TRUE(isAliased(begin + 16, begin + kPage));
}
#endif

}  // namespace
}  // namespace internal
GLOO_NAMESPACE_END
