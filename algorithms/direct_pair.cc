// What those direct collectives of two ranks do in their rounds that differ
// from those of more.
#include <algorithm>
#include <chrono>

#include "algorithms/direct.h"
#include "algorithms/direct_pieces.h"
#include "gloo/internal/hints.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// A half of a chunk that goes to the other rank and comes back. Measured, with
// second-level caches of 1 MiB, allreduce of 1 and 4 MiB, the time to that with
// 128 KiB: 64 KiB 1.0 (near) to 1.3 (no common cache), 256 KiB .97 to 1.07.
constexpr size_t kHalf = 128 << 10;

// Lines of the other core that are asked for before the first is used: so long
// processors take to see that they are read one after the other. Measured where
// the ranks share no cache, allreduce of 4 KiB: 1.04 of the time without.
constexpr size_t kAhead = 4 << 10;

// The lines will be written soon: one transfer instead of two.
void claim(const char* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kLine) {
    internal::fetchToWrite(data + i);
  }
}

}  // namespace

void DirectRun::combinePair(char* target, const char* own, char* theirs,
                            size_t bytes) const {
  const size_t block = whole(kBlock);
  claim(theirs, std::min(bytes, kAhead));
  for (size_t done = 0; done < bytes; done += block) {
    const size_t part = std::min(block, bytes - done);
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
  const auto pass = [&](const Part& out, char* place, const Part& in) {
    passOn(output_ + out.begin, out.bytes, place, input_ + in.begin, in.bytes);
  };
  uint64_t first = lane_.round() + 1;
  for (size_t step = 0; step <= chunks; step++) {
    const uint64_t round = begin();
    if (step == 1 && beginsAgain(first)) {
      first = round;
      step = 0;
    }
    pass(halfOf(step - 2, other), lane_.fixedSlot(rank_, round),
         halfOf(step, other));
    reduceAway(halfOf(step - 1, rank_), lane_.fixedSlot(other, round - 1));
    publish(round);
  }
  const uint64_t last = first + chunks;
  waitForAll(last);
  // Nobody writes here before this rank has published another round.
  pass(halfOf(chunks - 1, other), lane_.fixedSlot(rank_, last + 1), {});
  endPasses();
}

// What comes in a round lies where this rank puts what it sends in the next
// one: a cache line that has gone to the other core comes back with what is
// wanted here.
void DirectRun::exchange(const Move& sent, const Move& received,
                         const Move& own) {
  const size_t longest = std::max({sent.bytes, received.bytes, own.bytes});
  const size_t pieces = piecesOf(longest, chunkBytes_);
  // Of the piece of a step; none before the first one and after the last.
  const auto pieceAt = [&](size_t step, const Move& move) {
    if (step >= pieces) {
      return Part{};
    }
    const size_t c = pieceOf(step, pieces);
    return Part{c * chunkBytes_, lengthOf(c, chunkBytes_, move.bytes)};
  };
  uint64_t first = lane_.round() + 1;
  for (size_t step = 0; step <= pieces; step++) {
    const uint64_t round = lane_.round() + 1;
    if (step < pieces) {
      begin();
    } else {  // what is there is there, whatever has happened since
      waitForAll(round - 1);
    }
    if (step == 1 && beginsAgain(first)) {
      first = round;
      step = 0;
    }
    const Part out = pieceAt(step - 1, received);
    const Part in = pieceAt(step, sent);
    passOn(received.to + out.begin, out.bytes, mine(round),
           sent.from + in.begin, in.bytes);
    if (step < pieces) {
      publish(round);
      const Part part = pieceAt(step, own);
      copyResult(own.to + part.begin, own.from + part.begin, part.bytes);
    }
  }
  endPasses();
}

// `out` bytes from `place` to `to`, and `in` bytes from `from` to `place`. In
// one loop each line is asked for once; in two some processors fetch more of
// them ahead. Measured, the time in one loop to that in two, alltoall and
// allgather of 1 to 16 MiB: .79 to .98 on processors of one kind, 1.05 to 1.16
// on another.
void DirectRun::passOn(char* to, size_t out, char* place, const char* from,
                       size_t in) {
  const size_t both = std::min(out, in);
  Lane::PassTrial& trial = lane_.passTrial(sharedBytes_);
  const size_t inOne = trial.goesSecond() ? 0 : both;
  const auto pass = [&] {
    if (inOne > 0) {
      internal::exchangeKernel()(to, place, from, inOne);
    }
    copy(to + inOne, place + inOne, out - inOne);
    copy(place + inOne, from + inOne, in - inOne);
  };
  if (both == 0 || !trial.isTimed()) {
    pass();
  } else {
    using Clock = std::chrono::steady_clock;
    const auto since = Clock::now();
    pass();
    passed_.ns +=
        std::chrono::duration<double, std::nano>(Clock::now() - since).count();
  }
  passed_.bytes += both;
}

// Where nothing went both ways at once, both ways are the same.
void DirectRun::endPasses() {
  if (passed_.bytes == 0) {
    return;
  }
  Lane::PassTrial& trial = lane_.passTrial(sharedBytes_);
  trial.next(passed_.ns / static_cast<double>(passed_.bytes));
  trial.chooseOnceOver();
}

// The own input with what the other rank has put there; the sum takes its
// place.
void DirectRun::reduceAway(const Part& part, char* theirs) {
  const char* const own = input_ + part.begin;
  char* const output = output_ + part.begin;
  const bool isFirst = rank_ == 0;
  if (reduce_.kernel != nullptr) {
    return reduce_.toBoth(theirs, output, isFirst ? own : theirs,
                          isFirst ? theirs : own, part.bytes);
  }
  const size_t block = whole(kBlock);
  for (size_t done = 0; done < part.bytes; done += block) {
    const size_t length = std::min(block, part.bytes - done);
    char* const sum = theirs + done;
    char* const to = output + done;
    if (isFirst) {
      // A function may use up its left operand, which the caller keeps.
      copy(to, own + done, length);
      reduce_(to, to, sum, length);
      copy(sum, to, length);
    } else {
      reduce_(sum, sum, own + done, length);
      copy(to, sum, length);
    }
  }
}

}  // namespace algorithms
GLOO_NAMESPACE_END
