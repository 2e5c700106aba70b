#include "transport/base/fork.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

// One bit for each descriptor number. Linux hands out the lowest free number,
// and fs.nr_open is 2^20 unless somebody raised it; pages never touched cost
// nothing.
constexpr int kMaxDescriptors = 1 << 20;
constexpr int kBits = 64;
std::array<std::atomic<uint64_t>, kMaxDescriptors / kBits> owned;
std::atomic<int> highestWord{-1};

// Runs in the child, which has one thread, before fork() returns.
void closeInherited() {
  const int savedErrno = errno;
  for (int word = 0; word <= highestWord.load(); word++) {
    uint64_t bits = owned[word].exchange(0);
    for (; bits != 0; bits &= bits - 1) {
      ::close(word * kBits + std::countr_zero(bits));
    }
  }
  highestWord = -1;
  errno = savedErrno;
}

// At load time, before any descriptor exists.
[[maybe_unused]] const int installed =
    pthread_atfork(nullptr, nullptr, &closeInherited);

}  // namespace

void registerDescriptor(int fd) {
  if (fd < 0 || fd >= kMaxDescriptors) {
    return;
  }
  const int word = fd / kBits;
  int highest = highestWord.load();
  while (highest < word && !highestWord.compare_exchange_weak(highest, word)) {
  }
  owned[word].fetch_or(uint64_t{1} << (fd % kBits));
}

void unregisterDescriptor(int fd) {
  if (fd < 0 || fd >= kMaxDescriptors) {
    return;
  }
  owned[fd / kBits].fetch_and(~(uint64_t{1} << (fd % kBits)));
}

}  // namespace transport::base
GLOO_NAMESPACE_END
