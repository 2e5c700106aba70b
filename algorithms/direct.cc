// Rounds, agreement and errors of direct collectives; what they do in them is
// in direct_collectives.cc and direct_reductions.cc.
#include "algorithms/direct.h"

#include <algorithm>
#include <cstring>

#include "algorithms/direct_pieces.h"
#include "algorithms/reduce_locally.h"
#include "algorithms/state.h"
#include "gloo/common/error.h"
#include "gloo/internal/check.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

using internal::Cause;

namespace {

// What takes longer than an operation may take is longer than this.
constexpr size_t kTimedBytes = 1 << 20;

// Stands for memory that an operation does not have on this rank. Nothing is
// read or written there, but places in it are reckoned, which C++ does not
// define for a null pointer.
char nowhere;

template <typename T>
T* orNowhere(T* memory) {
  return memory != nullptr ? memory : &nowhere;
}

}  // namespace

DirectRun::DirectRun(internal::Channel& channel, internal::Lane& lane,
                     const DirectParameters& parameters,
                     const Request& request, const DirectSizes& sizes,
                     const Arguments& arguments, const Word& word,
                     std::chrono::milliseconds waited)
    : channel_(channel),
      lane_(lane),
      parameters_(parameters),
      request_(request),
      arguments_(arguments),
      word_(word),
      waited_(waited),
      rank_(lane.rank()),
      size_(lane.size()),
      input_(orNowhere(static_cast<const char*>(
          request.inPlace ? arguments.output : arguments.input))),
      output_(orNowhere(static_cast<char*>(arguments.output))),
      bytes_(sizes.vector),
      sharedBytes_(sizes.shared),
      unit_(sizes.unit),
      chunkBytes_(sizes.chunk),
      wholeBytes_(sizes.whole),
      leastInPlace_(sizes.leastInPlace),
      before_(lane.round()),
      foreign_(arguments.kernel == nullptr && arguments.function != nullptr
                   ? [this, function = arguments.function](
                         void* c, const void* a, const void* b, size_t n) {
                       (*function)(c, a, b, n);
                       lookAtTime();
                     }
                   : internal::ReduceFunction()),
      reduce_{arguments.kernel, foreign_ ? &foreign_ : nullptr,
              request.elementSize} {}

void DirectRun::run() {
  if (lane_.failed()) {
    throwFailure();
  }
  // Once the context has failed, nobody begins anything: what others still
  // write goes nowhere.
  struct Guard {
    DirectRun& run;
    ~Guard() {
      if (run.exposed_.memory != 0) {
        run.lane_.withdraw(run.exposed_, run.bytes_);
      }
    }
  } const guard{*this};
  try {
    // Else the clock is not looked at before anything has to be waited for.
    if (arguments_.own != nullptr || reduce_.isForeign() ||
        sharedBytes_ >= kTimedBytes) {
      startTime();
    }
    reduceOwn();
    dispatch();
  } catch (const std::exception& e) {
    abandon(e.what());
    throw;
  } catch (...) {
    abandon("a reduce function threw");
    throw;
  }
}

void DirectRun::reduceOwn() {
  if (arguments_.own == nullptr) {
    return;
  }
  announce();  // who contradicts has it before any vector is changed
  reduceLocally(reduce_, *arguments_.own, output_, [this] { lookAtTime(); });
}

// ---- Rounds

uint64_t DirectRun::begin() {
  if (timed_) {
    lookAtTime();
  }
  const uint64_t before = lane_.round();
  if (before > lane_.seen()) {
    announce();
    waitForAll(before);
  }
  return before + 1;
}

// What others have said of this operation over the links, or will say, is
// compared with its word from here on.
void DirectRun::announce() {
  if (word_.announces || lane_.repeats.marked()) [[unlikely]] {
    announceNow();
  }
}

void DirectRun::announceNow() {
  if (word_.announces) {
    word_.announces = false;
    channel_.begin(word_.slot, word_.check, nullptr, &lane_.repeats);
  } else {
    lane_.tellRepeats();
  }
  if (lane_.failed()) {
    throwFailure();
  }
}

void DirectRun::publish(uint64_t round) {
  std::memcpy(lineFor(round).payload, &offer_, sizeof(offer_));
  send(round);
}

void DirectRun::publishInline(uint64_t round, const void* data, size_t bytes) {
  copy(lineFor(round).payload, data, bytes);
  send(round);
}

DirectRun::Line& DirectRun::lineFor(uint64_t round) {
  Line& line = lane_.line(rank_, round);
  line.check = word_.check;
  line.bytes = sharedBytes_;
  lane_.said(round) = {word_.check, sharedBytes_};
  return line;
}

void DirectRun::send(uint64_t round) {
  lane_.publish(round);
  announce();
}

// Those that go on only once this rank has given its core away. Before others
// are waited for, which do not need that.
void DirectRun::waitForNear(uint64_t round) {
  if (!lane_.crowded()) {
    return;
  }
  for (int rank = 0; rank < size_; rank++) {
    if (rank != rank_ && lane_.sharesCore(rank)) {
      waitFor(rank, round);
    }
  }
}

// The ranks in the order in which this one moves what each has for it, or it
// for them: where each has a core, not all at once the same one's. Measured
// with 8 ranks on 16 cores, the time to that from rank 0 on: alltoall of 64 and
// 256 KiB .78 and .82, allreduce to 4 MiB .87 to .95, allgather .91 to .96. (8
// ranks on 2 cores, allreduce of 256 KiB and 1 MiB: 1.3.)
int DirectRun::inTurn(int index) const {
  const int rank = lane_.crowded() ? index : rank_ + index;
  return rank < size_ ? rank : rank - size_;
}

void DirectRun::waitForAll(uint64_t round) {
  waitForNear(round);
  for (int rank = 0; rank < size_; rank++) {
    if (rank != rank_) {
      waitFor(rank, round);
    }
  }
  lane_.setSeen(round);
}

void DirectRun::waitFor(int rank, uint64_t round) {
  if (!lane_.isThere(rank, round)) [[unlikely]] {
    awaitLine(rank, round);
  }
  const Line& line = lane_.line(rank, round);
  const Lane::Said theirs{line.check, line.bytes};
  const Lane::Said& ours = lane_.said(round);
  if (theirs.check != ours.check || theirs.bytes != ours.bytes) [[unlikely]] {
    compare(rank, round, ours, theirs);
  }
}

[[gnu::noinline]] void DirectRun::awaitLine(int rank, uint64_t round) {
  if (lane_.glance(rank, round)) {
    return;
  }
  if (!timed_) {
    startTime();
  }
  announce();  // a mark may have come since
  switch (lane_.wait(rank, round, deadline_)) {
    case Lane::Outcome::kThere:
      break;
    case Lane::Outcome::kTimeout:
      fail(Cause::Kind::kTimeout, rank,
           MakeString("Timed out after ", arguments_.timeout.count(),
                      " ms: rank ", rank_, " waited for rank ", rank));
    case Lane::Outcome::kFailed:
      throwFailure();
  }
}

// Words that are not the same may yet agree.
[[gnu::noinline]] void DirectRun::compare(int rank, uint64_t round,
                                          const Lane::Said& ours,
                                          const Lane::Said& theirs) {
  const bool agree = internal::checksAgree(ours.check, theirs.check);
  if (agree && ours.bytes == theirs.bytes) {
    return;
  }
  // Of the operation before this one in the lane, if that is what differs.
  const auto tag = static_cast<uint32_t>(
      round <= lane_.earlierRound ? lane_.earlierTag : lane_.previous.tag);
  const std::string difference =
      agree ? std::string() : differenceTo(rank, round, ours, theirs);
  const std::string bytes =
      ours.bytes == theirs.bytes
          ? std::string()
          : MakeString(agree ? "" : "; ", "bytes: ", ours.bytes, " on rank ",
                       rank_, ", ", theirs.bytes, " on rank ", rank);
  fail(Cause::Kind::kMismatch, rank,
       MakeString("ranks ", rank_, " and ", rank,
                  " disagree about a collective with tag ", tag, ": ",
                  difference, bytes, " (rank ", rank_, ": ",
                  internal::describeCheck(ours.check), "; rank ", rank, ": ",
                  internal::describeCheck(theirs.check), ")"));
}

// Of a single count of elements of some size: the number of bytes tells them,
// if they have the other rank's hash. Of a size that the library does not know,
// all are tried that the word may mean.
std::optional<internal::CheckDetails> DirectRun::detailsByBytes(
    const internal::CheckDetails& own, const Lane::Said& theirs) const {
  const auto fields = internal::CheckFields::unpack(theirs.check);
  internal::CheckDetails their = own;
  their.root = (own.root & ~0xffu) | fields.rootHash;  // the rest is hashed
  const auto isTheirs = [&](size_t elementSize) {
    const size_t unit =
        sharedBytes(request_.collective, size_, {.count = 1}, elementSize);
    if (unit == 0 || theirs.bytes % unit != 0) {
      return false;
    }
    Request same = request_;
    same.elementSize = their.elementSize = elementSize;
    same.counts.count = their.count = theirs.bytes / unit;
    const uint64_t word = checkOf(same, size_, kDirectId);
    return fields.countHash == internal::CheckFields::unpack(word).countHash;
  };
  if (!own.counts.empty()) {
    return std::nullopt;
  }
  if (isTheirs(own.elementSize)) {
    return their;
  }
  const size_t most = fields.type == 0 ? size_t{1} << fields.log2Size : 0;
  for (size_t elementSize = most / 2 + 1; elementSize <= most; elementSize++) {
    if (isTheirs(elementSize)) {
      return their;
    }
  }
  return std::nullopt;
}

// Counts are hashed where they are long, or several, and so are the vectors of
// an average and odd element sizes. What the bytes do not tell the other rank
// tells, if it notices as well: all ranks read all lines of lists and averages.
std::string DirectRun::differenceTo(int rank, uint64_t round,
                                    const Lane::Said& ours,
                                    const Lane::Said& theirs) {
  const internal::Statement one{rank_, ours.check};
  const internal::Statement other{rank, theirs.check};
  if (round <= before_ || internal::nameTheField(ours.check, theirs.check)) {
    return internal::describeDisagreement(one, other);
  }
  const internal::CheckDetailsPtr own = detailsOf(request_, rank_, size_);
  if (const auto their = detailsByBytes(*own, theirs)) {
    return internal::describeDisagreement(one, other, own.get(), &*their);
  }
  channel_.contradict({word_.slot, one, own, other});
  awaitFailure();
  return internal::describeDisagreement(one, other);
}

// ---- Errors

void DirectRun::startTime() {
  deadline_ = Deadline::after(leftOf(arguments_.timeout, waited_));
  timed_ = true;
}

void DirectRun::lookAtTime() {
  if (timed_ && deadline_.expired()) {
    fail(Cause::Kind::kTimeout, rank_,
         MakeString("Timed out after ", arguments_.timeout.count(),
                    " ms: rank ", rank_, " is still at work on its own part"));
  }
  if (lane_.failed()) {
    throwFailure();
  }
}

void DirectRun::fail(Cause::Kind kind, int culprit, std::string text) {
  auto cause = std::make_shared<Cause>();
  cause->kind = kind;
  cause->foundBy = rank_;
  cause->culprit = culprit;
  cause->text = std::move(text);
  cause->slot = word_.slot;
  channel_.fail(cause);
  throwFailure();
}

void DirectRun::throwFailure() {
  const internal::CausePtr cause = channel_.failure();
  if (cause == nullptr) {
    throw IoException(describe() + ": the context is being closed");
  }
  internal::throwCause(*cause, describe());
}

// The context is unusable from here on: this rank has not done its part.
void DirectRun::abandon(const char* what) noexcept {
  algorithms::abandon(channel_,
                      [&] { return MakeString(describe(), ": ", what); });
}

std::string DirectRun::describe() const {
  return MakeString("rank ", rank_, ": ", nameOf(request_.collective), " tag ",
                    arguments_.tag,
                    " (direct): ", bytes_ > 0 ? bytes_ : sharedBytes_,
                    " bytes, round ", lane_.round());
}

// ---- Sizes

size_t DirectRun::whole(size_t bytes) const { return bytes / unit_ * unit_; }

size_t DirectRun::wholeUp(size_t bytes) const {
  return (bytes + unit_ - 1) / unit_ * unit_;
}

DirectRun::Part DirectRun::partOf(const size_t* offsets, int rank) const {
  const auto r = static_cast<size_t>(rank);
  const size_t e = request_.elementSize;
  return offsets == nullptr
             ? Part{r * bytes_, bytes_}
             : Part{offsets[r] * e, (offsets[r + 1] - offsets[r]) * e};
}

size_t DirectRun::longestPart(const size_t* offsets) const {
  size_t longest = 0;
  for (int rank = 0; rank < size_; rank++) {
    longest = std::max(longest, partOf(offsets, rank).bytes);
  }
  return longest;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
