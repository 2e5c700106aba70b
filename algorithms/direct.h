// Collectives on memory that all ranks have mapped: see gloo/internal/direct.h
// for its rules. Every rank reads its peers' contributions where they lie.
//
//   inline   up to 104 bytes ride in the flag's cache line and the one beside
//            it: one round
//   flat     allreduce, everybody reads everything: one round, to a few KiB
//   rooted   reduce, the root reads everything, in chunks of a slot: one round
//            each, to some hundred KiB, of two ranks always
//   swap     allreduce of two ranks, in chunks of a slot: one round each, to
//            32 KiB unless ranks share a core
//   halved   the same, longer: each reduces a half of a chunk in the other's
//            slot; the steps of three neighbouring chunks share a round
//   exchange alltoall and allgather of two ranks: where a chunk came in, the
//            next one goes back
//   staged   slices: copied in, each reduced by its owner, copied out; the
//            three steps of neighbouring chunks share a round
//   in place where all vectors are in memory of the shared allocator: nothing
//            is copied in, results are read from where they were reduced
//   read     long alltoall, where ranks may read each other's memory: the
//            kernel copies each part
//
// From which sizes on, DirectParameters say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "algorithms/direct_parameters.h"
#include "algorithms/direct_sizes.h"
#include "algorithms/executor.h"
#include "algorithms/plan.h"
#include "gloo/internal/direct.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

struct Arguments;

// One call. Borrows everything; one thread.
class DirectRun {
 public:
  // What the ranks compare.
  struct Word {
    uint64_t check = 0;  // as Channel::begin returns it
    uint64_t slot = 0;
    // Neither was Channel::begin called nor the operation counted as one that
    // repeats another: begin() is, while the first line travels.
    bool announces = false;
  };

  // The lane was entered, for which `waited` of the timeout has passed.
  DirectRun(internal::Channel& channel, internal::Lane& lane,
            const DirectParameters& parameters, const Request& request,
            const DirectSizes& sizes, const Arguments& arguments,
            const Word& word, std::chrono::milliseconds waited);

  // Throws as Executor::run does; then the context has failed.
  void run();

 private:
  using Lane = internal::Lane;
  using Line = internal::LaneLine;

  // Of this rank's part.
  struct Part {
    size_t begin = 0;  // bytes
    size_t bytes = 0;
    size_t end() const { return begin + bytes; }
  };

  void reduceOwn();
  void dispatch();
  void barrier();
  void allreduce();
  void allreducePair();
  void swapAllreduce();
  void halvedAllreduce();
  void staged(bool everybody);
  void reduce();
  void reduceAtRoot();
  void broadcast();
  void broadcastInline();
  void allgather();
  void reduceScatter();
  void alltoall();
  void alltoallInline();
  // Whether a rank may offer ordinary memory. All ranks say the same.
  bool mayBeRead() const;
  enum class Way { kSlots, kRead, kInPlace };
  // With no trial not by the kernel.
  Way alltoallLong(Lane::ReadTrial* trial);

  // ---- Vectors of the shared allocator; see direct_in_place.cc.
  // What the lines of an operation's first round say of a rank's vectors, and
  // of later ones nothing new.
  struct Offer {
    internal::Place input;
    internal::Place output;
    uint64_t note = 0;  // 1: new, to be settled; of ordinary memory: noteOf()
  };
  static_assert(sizeof(Offer) == Line::kFlagLineBytes);
  // Sets offer_ if what others would use is in such memory.
  void offer(const char* input);
  // Whether others write results to its output.
  bool wantsResult(int rank) const;
  // Of an input (and an output) that this rank offers.
  size_t offeredBytes(int rank) const;
  // This rank's own is offer_: nobody reads its own line once it is published.
  Offer offerOf(int rank, uint64_t round) const;
  // Whether there are ranks of whose input nobody uses anything.
  bool someOfferNothing() const;
  // Whether all have offered that have an input.
  bool allOffer(uint64_t round) const;
  // Whether one has, where this rank did not: then the first round was for
  // nothing. Of that round, which is looked at first, and of no later one.
  bool beginsAgain(uint64_t round);
  // One round, for who offers: true if all do and have mapped what the others
  // offer (inputs_ and outputs_ say where), or if all offer ordinary memory.
  // offer_ is empty then.
  bool agreeOnOffers();
  // Whether all say so; one more round.
  bool allSay(bool mine);
  // All ranks come here, or none, once they have seen the same offers: those of
  // [first, last).
  bool mapOffers(uint64_t round, int first, int last);
  // To the others, what the ranks of [first, last) offer. One round.
  void handOver(int first, int last);
  // Throws, unless isNew, where that rank's memory is not there.
  bool mapOffer(int rank, const Offer& theirs, bool isNew);
  // The last round: whether all have read what they wanted.
  bool finishInPlace(bool hasRead = true);
  void reduceInPlace();
  bool broadcastInPlace(uint64_t round);
  void allgatherInPlace(const size_t* offsets);
  void alltoallInPlace();
  // Through the kernel, after the round of the offers. False, on all ranks: one
  // of them could not.
  bool readAlltoall();
  // After that round, once both ways have been tried.
  void chooseWay(Lane::ReadTrial& trial);
  static uint64_t noteOf(const std::array<double, 2>& times);
  void reduceScatterInPlace(char* target, const Part& own);
  // The reduction over inputs_, from `at` on, to all outputs_.
  void combineInPlace(size_t at, size_t bytes) const;
  // The same over what others only read, to this rank's own.
  void combineInputs(char* target, size_t at, size_t bytes) const;

  // ---- Of two ranks; see direct_pair.cc.
  // Bytes that are moved.
  struct Move {
    const char* from = nullptr;
    char* to = nullptr;
    size_t bytes = 0;
  };
  void exchange(const Move& sent, const Move& received, const Move& own);
  void passOn(char* to, size_t out, char* place, const char* from, size_t in);
  // After the last one of an operation.
  void endPasses();
  void reduceAway(const Part& part, char* theirs);

  void reduceInline(char* target, const Part& part, bool wanted);
  void reduceFlat();
  // Where its input is as it was when it combines the others' with that.
  bool keepsOwnInput() const;
  // What lies at `place` in all ranks' slots, to [at, at + bytes) of the
  // output.
  void combineSlots(uint64_t round, size_t place, size_t at,
                    size_t bytes) const;

  // ---- Steps of a round.
  // Number of the next one; all have published the one before.
  uint64_t begin();
  void announce();
  void announceNow();
  // What is there, or `data`, at most Line::kPayloadBytes.
  void publish(uint64_t round);
  void publishInline(uint64_t round, const void* data, size_t bytes);
  // The line of that round, without what it carries.
  Line& lineFor(uint64_t round);
  void send(uint64_t round);
  // Also compares what the rank does with what this one does.
  void waitFor(int rank, uint64_t round);
  void awaitLine(int rank, uint64_t round);
  void waitForAll(uint64_t round);
  void waitForNear(uint64_t round);
  int inTurn(int index) const;
  char* mine(uint64_t round) const { return lane_.slot(rank_, round); }
  const char* of(int rank, uint64_t round) const {
    return lane_.slot(rank, round);
  }

  // target = at(0) (op) at(1) (op) ... for all ranks; the target is none of
  // them.
  template <typename At>
  void combine(char* target, const At& at, size_t bytes) const;
  // The same for two ranks, `theirs` in a slot that is this rank's from now on.
  // The target may be `own`.
  void combinePair(char* target, const char* own, char* theirs,
                   size_t bytes) const;

  // The next multiple of the element size, or, where those divide a cache line,
  // of lines.
  size_t whole(size_t bytes) const;
  size_t wholeUp(size_t bytes) const;
  Part partOf(const size_t* offsets, int rank) const;
  size_t longestPart(const size_t* offsets) const;

  // The time is taken from now on.
  void startTime();
  // Throws at the deadline, if the time is taken, and once the context has
  // failed.
  void lookAtTime();
  // What all ranks' vectors take in bytes decides how results are stored that
  // are only moved.
  void choosePath(size_t vectorBytes);
  void copyResult(char* to, const char* from, size_t bytes) const;
  // The same, with looks at the time.
  void copyLong(char* to, const char* from, size_t bytes);

  void compare(int rank, uint64_t round, const Lane::Said& ours,
               const Lane::Said& theirs);
  std::optional<internal::CheckDetails> detailsByBytes(
      const internal::CheckDetails& own, const Lane::Said& theirs) const;
  std::string differenceTo(int rank, uint64_t round, const Lane::Said& ours,
                           const Lane::Said& theirs);
  [[noreturn]] void fail(internal::Cause::Kind kind, int culprit,
                         std::string text);
  [[noreturn]] void throwFailure();
  // Another rank knows of one: throws it, unless it takes longer than a failure
  // takes to be known by the links.
  void awaitFailure();
  void abandon(const char* what) noexcept;
  std::string describe() const;

  internal::Channel& channel_;
  Lane& lane_;
  const DirectParameters& parameters_;
  const Request& request_;
  const Arguments& arguments_;
  Word word_;
  const std::chrono::milliseconds waited_;
  const int rank_;
  const int size_;
  const char* const input_;
  char* const output_;
  // Of the DirectSizes.
  const size_t bytes_;
  const size_t sharedBytes_;
  const size_t unit_;
  const size_t chunkBytes_;
  const size_t wholeBytes_;
  const size_t leastInPlace_;
  const uint64_t before_;  // the last round of the operation before
  // The caller's, with a look at the time after each call; empty: none.
  const internal::ReduceFunction foreign_;
  const Reducer reduce_;
  Deadline deadline_;
  bool timed_ = false;
  bool streams_ = false;  // past the caches
  // Of such a size; not looked at yet.
  bool othersMayOffer_ = false;
  Offer offer_;
  internal::Place exposed_;  // where others may write
  // What passOn() has moved both ways at once, and taken, where that is tried.
  struct {
    double ns = 0;
    size_t bytes = 0;
  } passed_;
  // Of each rank, as this one has them mapped; null: nobody writes there.
  std::array<const char*, internal::Direct::kMaxRanks> inputs_;
  std::array<char*, internal::Direct::kMaxRanks> outputs_;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
