// What the direct reductions of two ranks do in their rounds.
#include <algorithm>
#include <cstdint>

#include "algorithms/direct.h"
#include "algorithms/direct_pieces.h"
#include "gloo/internal/sanitized.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// A half of a chunk that goes to the other rank and comes back. Measured, with
// second-level caches of 1 MiB: 64 and 128 KiB alike, 32 and 256 KiB slower.
constexpr size_t kHalf = 128 << 10;

// Vectors that are longer than this, and slots with them, are in no cache when
// they are written: `rep movs` does not read the lines first. It takes longer
// to begin. Measured with a third level of 32 MiB, 2 ranks, allreduce, the time
// with it to that with memcpy: 64 KiB to 1 MiB 1.2, 8 MiB 1.06, 16 MiB .7 to
// .8, 64 MiB .8.
constexpr size_t kLongBytes = 8 << 20;

void copyStep(char* to, const char* from, size_t bytes, bool isLong) {
#if defined(__x86_64__) && !GLOO_SANITIZED
  if (isLong) {
    size_t words = bytes / sizeof(uint64_t);
    asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
    bytes %= sizeof(uint64_t);
  }
#else
  (void)isLong;
#endif
  // Where GCC knows a length to be a step's at most, it does that as well.
  asm("" : "+r"(bytes));
  copy(to, from, bytes);
}

}  // namespace

void DirectRun::combinePair(char* target, const char* own, char* theirs,
                            size_t bytes) const {
  const size_t block = whole(kBlock);
  for (size_t done = 0; done < bytes; done += block) {
    const size_t part = std::min(block, bytes - done);
    claim(theirs + done, part);
    if (rank_ == 0) {
      reduce_(target + done, own + done, theirs + done, part);
    } else {
      reduce_(target + done, theirs + done, own + done, part);
    }
  }
}

void DirectRun::allreducePair() {
  if (bytes_ >= parameters_.halvedBytes && !lane_.crowded()) {
    halvedAllreduce();
  } else {
    swapAllreduce();
  }
}

void DirectRun::swapAllreduce() {
  const int other = 1 - rank_;
  const size_t chunk = whole(chunkBytes_);
  size_t left = piecesOf(bytes_, chunk);
  while (left > 0) {
    const size_t c = left - 1;
    const size_t at = c * chunk;
    const size_t length = lengthOf(c, chunk, bytes_);
    const uint64_t round = begin();
    copy(mine(round), input_ + at, length);
    publish(round);
    waitForAll(round);
    if (beginsAgain(round)) {
      continue;
    }
    combinePair(output_ + at, input_ + at, lane_.slot(other, round), length);
    left--;
  }
}

// Each rank reduces one half of a chunk. What it has of the other half goes
// into a place of its own, where the other rank puts the sum in its stead. So
// half as much is copied in as above, and a cache line that has gone to the
// other core comes back with what is wanted here. The chunk of step s comes in
// in round first + s, is reduced in the next, and goes out in the one after
// that, while the chunk of step s + 2 takes its place.
void DirectRun::halvedAllreduce() {
  const int other = 1 - rank_;
  const size_t longest = 2 * whole(std::min(chunkBytes_, kHalf));
  // Of two chunks one is moved while the other one is reduced.
  const size_t chunks =
      std::max<size_t>(piecesOf(bytes_, longest), bytes_ > kHalf ? 2 : 1);
  const size_t half = wholeUp((bytes_ + 2 * chunks - 1) / (2 * chunks));
  const auto halfOf = [&](size_t step, int rank) {
    if (step >= chunks) {  // before the first one, too
      return Part{};
    }
    const size_t c = pieceOf(step, chunks);
    const size_t at = 2 * half * c;
    const auto index = static_cast<size_t>(rank);
    return Part{at + index * half,
                lengthOf(index, half, lengthOf(c, 2 * half, bytes_))};
  };
  uint64_t first = lane_.round() + 1;
  for (size_t step = 0; step <= chunks; step++) {
    const uint64_t round = begin();
    if (step == 1 && beginsAgain(first)) {
      first = round;
      step = 0;
    }
    passOn(halfOf(step - 2, other), lane_.fixedSlot(rank_, round),
           halfOf(step, other));
    reduceAway(halfOf(step - 1, rank_), lane_.fixedSlot(other, round - 1));
    publish(round);
  }
  const uint64_t last = first + chunks;
  waitForAll(last);
  // Nobody writes here before this rank has published another round.
  passOn(halfOf(chunks - 1, other), lane_.fixedSlot(rank_, last + 1), {});
}

// From `place` to the output, and from the input to `place`, which this core
// has to fetch from the other one, but once.
void DirectRun::passOn(const Part& out, char* place, const Part& in) {
  const size_t both = std::min(out.bytes, in.bytes);
  const size_t bytes = std::max(out.bytes, in.bytes);
  const bool isLong = bytes_ > kLongBytes;
  const internal::ExchangeKernel exchange = internal::exchangeKernel();
  claimedInSteps(place, bytes, kStep, [&](size_t done, size_t length) {
    char* const to = output_ + out.begin + done;
    const char* const from = input_ + in.begin + done;
    if (!isLong && done + length <= both) {
      return exchange(to, place + done, from, length);
    }
    copyStep(to, place + done, lengthOf(done / kStep, kStep, out.bytes),
             isLong);
    copyStep(place + done, from, lengthOf(done / kStep, kStep, in.bytes),
             isLong);
  });
}

// The own input with what the other rank has put there; the sum takes its
// place.
void DirectRun::reduceAway(const Part& part, char* theirs) {
  const bool isKnown = reduce_.kernel != nullptr;
  const bool isLong = bytes_ > kLongBytes;
  const size_t block = whole(isKnown ? kStep : kBlock);
  claimedInSteps(theirs, part.bytes, block, [&](size_t done, size_t length) {
    const char* const own = input_ + part.begin + done;
    char* const output = output_ + part.begin + done;
    char* const sum = theirs + done;
    const char* const left = rank_ == 0 ? own : sum;
    const char* const right = rank_ == 0 ? sum : own;
    if (isKnown && !isLong) {
      reduce_.toBoth(sum, output, left, right, length);
    } else if (isKnown || rank_ == 1) {
      reduce_(sum, left, right, length);
      copyStep(output, sum, length, isLong);
    } else {
      // A function may use up its left operand, which the caller keeps.
      copy(output, own, length);
      reduce_(output, output, sum, length);
      copy(sum, output, length);
    }
  });
}

}  // namespace algorithms
GLOO_NAMESPACE_END
