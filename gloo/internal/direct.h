// Scratch memory that all ranks of a context have mapped, for collectives that
// read each other's contributions where they lie: no message, no system call.
// There if all ranks are on one host and all links between them are shared
// memory; agreed when the context is connected. Implemented by transport/base.
//
// A lane is scratch for one operation at a time. Its operations proceed in
// rounds, numbered from 1 on and counted alike by all ranks. In each round
// every rank
//   1. waits until all ranks have published the round before,
//   2. writes its contribution into its line or its slot of this round,
//   3. publishes the round,
//   4. waits for those ranks whose contribution it needs, and reads them.
// Lines and slots are used in turn by odd and even rounds: who has published a
// round has read all that it needs of the round before, so what is written in
// step 2 is read by nobody any more. That holds for all slots of a round, so a
// rank that alone contributes may use them all.
//
// With two ranks the slots are swapped: the one that a rank has read in a round
// is the one that it writes in the next, since it is in its cache. So a rank
// reads its own slot at no time after it has published it. (The other slot of a
// round may still be read then: it was the other rank's of the round before.)
//
// With more ranks, what one of them writes for one other alone goes to a place
// that both use in turn (slotBetween()): in every other of the rounds of the
// same half that use it, it is the reader that writes there. So it has the
// lines in its cache already, and no third cache has to be asked for them.
// Between cores that share no cache that halves what is moved. Measured there,
// 4 ranks on 2 cores: alltoall of 1 MiB 430 us without and 227 with.
//
// Memory order. Step 3 is a store, step 4 (and 1) begins with an acquiring load
// of the same number. To sleep, a reader sets its bell, for the rank that it
// waits for, and looks again; who publishes looks at the bells afterwards.
// These four are sequentially consistent, so that one of the two sees the
// other. But where each rank has a core, publishing is a releasing store alone:
// a sequentially consistent one makes the processor wait for its line, which
// comes from whoever has read it last. There the reader makes the others' cores
// pass a barrier before it looks again (transport/base/bell.h). Measured with 2
// ranks: broadcast of 4 bytes 171 ns, and 108 ns so; allgather of 64 bytes 249
// and 218. tests/model/lane.pml is a model of all that.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "gloo/common/deadline.h"
#include "gloo/config.h"
#include "gloo/internal/handover_copy.h"
#include "gloo/internal/hints.h"
#include "gloo/internal/repeats.h"
#include "gloo/internal/trial.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// What a rank has to say in a round: the cache line of the flag, and the one
// beside it, which longer payloads go on in. (Processors that fetch lines in
// pairs would otherwise take the line of the round before away from whoever has
// it.)
struct alignas(128) LaneLine {
  static constexpr size_t kFlagLineBytes = 40;  // that come with the flag
  static constexpr size_t kPayloadBytes = 104;
  static constexpr size_t kAlignment = 8;  // of the payload

  std::atomic<uint64_t> round;
  uint64_t check;  // see gloo/internal/check.h
  uint64_t bytes;  // in total: check words hold short hashes of long counts
  alignas(kAlignment) char payload[kPayloadBytes];
};
static_assert(sizeof(LaneLine) == 128);

// Where a vector lies in memory of the shared allocator
// (gloo/transport/shm/allocate.h), in terms that all ranks understand.
struct Place {
  // As `memory`: in the rank's own, at address `offset`, for Lane::read().
  static constexpr uint64_t kOrdinary = 1;

  uint64_t memory = 0;  // 0: it lies in other memory
  uint64_t offset = 0;  // bytes
};

// One rank's view of a lane. One thread at a time: between Direct::enter() and
// leave().
class GLOO_API Lane {
 public:
  enum class Outcome : uint8_t {
    kThere,
    kTimeout,
    kFailed,  // the context has; its cause says why
  };

  virtual ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  size_t slotBytes() const { return slotBytes_; }
  // Whether there are more ranks than cores: then a round costs a switch of
  // threads. All ranks say the same.
  bool crowded() const { return crowded_; }

  // The round that this rank published last.
  uint64_t round() const { return round_.load(std::memory_order_relaxed); }
  // The last one that all ranks have published, as far as this rank has looked.
  uint64_t seen() const { return seen_.load(std::memory_order_relaxed); }
  void setSeen(uint64_t round) {
    seen_.store(round, std::memory_order_relaxed);
  }
  LaneLine& line(int rank, uint64_t round) const {
    return lines_[2 * static_cast<size_t>(rank) + (round & 1)];
  }
  // A hint, before an operation is in the lane: it writes this rank's line, and
  // before that reads those of the others that were not read yet (a broadcast
  // of 4 bytes between two of 16 cores 226 and 197 ns). From any thread.
  void fetchLines() const {
    for (int other = 0; seen() < round() && other < size_; other++) {
      if (other != rank_) {
        fetchToRead(&line(other, round()));
      }
    }
    const auto* const bytes =
        reinterpret_cast<const char*>(&line(rank_, round() + 1));
    fetchToWrite(bytes);
    fetchToWrite(bytes + sizeof(LaneLine) / 2);
  }
  // Where the rank's contribution of that round lies; 64-byte aligned.
  char* slot(int rank, uint64_t round) const {
    const auto r = static_cast<size_t>(rank);
    const auto ranks = static_cast<size_t>(size_);
    const size_t half = round & 1;
    const size_t place = size_ == 2 ? ((r + half) & 1) : ranks * half + r;
    return slots_ + place * slotBytes_;
  }
  // The rank's in all rounds of the same half, with two ranks as well, for what
  // both write there in turn. Two ranks may read it until they publish the next
  // round of that half: slot() gives the same one then, or one of the others.
  char* fixedSlot(int rank, uint64_t round) const {
    const auto place = static_cast<uint64_t>(size_) * (round & 1) +
                       static_cast<uint64_t>(rank);
    return slots_ + place * slotBytes_;
  }
  // Where, in that round, `from` writes what only `to` reads, `place` bytes
  // from the beginning of the slot of a rank for each rank before the other:
  // all ranks say the same `place`, and places of a round do not overlap. With
  // two ranks the slot itself.
  char* slotBetween(int from, int to, uint64_t round, size_t place) const {
    if (size_ == 2) {
      return slot(from, round);
    }
    const bool swapped = swapped_[round & 1];
    return slot(swapped ? to : from, round) +
           static_cast<size_t>(swapped ? from : to) * place;
  }
  // After the last slotBetween() of a round, on all ranks, if what lay there
  // was for use: otherwise some of them have not written any.
  void swapPlaces(uint64_t round) { swapped_[round & 1] ^= true; }
  // The same as slot() in a round in which nobody else writes: all slots of the
  // round, which are side by side, but where they are swapped.
  char* slotAlone(int rank, uint64_t round) const {
    return slot(size_ == 2 ? rank : 0, round);
  }

  // Where in its slot a rank writes `bytes` (more than none, equal in all
  // rounds of an operation) that others only read: at another place in the next
  // round of the same half. Lines that another core has just read are slow to
  // take back from it. Measured with 2 ranks, broadcast of 256 KiB in four
  // chunks: 28 us without, 19 us where a line is used again after kReuseBytes
  // (or twice that), 28 us after half of that.
  size_t inTurn(size_t bytes, uint64_t round) const {
    const size_t place = (bytes + alignof(LaneLine) - 1) & -alignof(LaneLine);
    const size_t places = std::min(slotBytes_, kReuseBytes) / place;
    return places < 2 ? 0 : (round >> 1) % places * place;
  }

  // Into a slot that others read next.
  void copyOver(char* to, const char* from, size_t bytes) {
    copyOver_(to, from, bytes);
  }

  // The next round, which must be round() + 1; check and payload of the line
  // are written.
  void publish(uint64_t round) {
    round_.store(round, std::memory_order_relaxed);
    if (crowded_) {
      noteCore();
    }
    std::atomic<uint64_t>& number = line(rank_, round).round;
    if (sleepersMakeBarriers_) {
      number.store(round, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      number.store(round, std::memory_order_seq_cst);
    }
    for (int other = 0; other < size_; other++) {
      if (bells_[other].load(std::memory_order_seq_cst) == bellFor(rank_)) {
        ring(other);
      }
    }
  }

  // Whether that rank was last seen on the core that this one runs on: then it
  // will not go on before this one gives that away. A hint, for waiting. Never,
  // unless crowded.
  bool sharesCore(int rank) const {
    return crowded_ && cores_[rank].load(std::memory_order_relaxed) == core_;
  }

  bool isThere(int rank, uint64_t round) const {
    return line(rank, round).round.load(std::memory_order_acquire) >= round;
  }

  // Whether the rank has published the round, or does so soon. Each look takes
  // the line away from who is about to write it, on another core. Measured with
  // 2 ranks, barriers in a row, with pauses between looks to without: .9 of the
  // time where cores are close, .85 where they share no cache.
  bool glance(int rank, uint64_t round) const {
    for (int i = 0; i < glances_; i++) {
      if (isThere(rank, round)) {
        return true;
      }
      if (!crowded_) {
        pauseBetweenLooks();
      }
    }
    return false;
  }
  // Until it has.
  [[nodiscard]] virtual Outcome wait(int rank, uint64_t round,
                                     Deadline deadline) = 0;

  // What this rank said in its last two rounds, to be compared with the others'
  // lines. Not read from its own, which have gone to whoever read them: some
  // processors hand over a line that was written as if it would be written
  // again.
  struct Said {
    uint64_t check = 0;
    uint64_t bytes = 0;
  };
  Said& said(uint64_t round) { return said_[round & 1]; }

  // Of the operation that was in this lane last, for whoever uses it.
  struct Previous {
    uint64_t tag = 0;
    uint64_t elsewhere = 0;
    uint16_t sequence = 0;  // of its check word; 0: none
  };
  Previous previous;
  // Rounds up to this one belong to operations with other tags than the one
  // that is in this lane; the last of them had `earlierTag`.
  uint64_t earlierRound = 0;
  uint64_t earlierTag = 0;

  Repeats repeats;
  // The channel takes their count now.
  virtual void tellRepeats() = 0;

  // ---- Vectors that need no slots. Nothing of it locks or allocates, except
  // when the memory, or one of a handful that were used before, has changed.

  // [data, data + bytes) as the others may be told of it. Sets *isNew if this
  // context has not used that memory before: it has to be lent to them, and
  // whether all could map it found out, and settled.
  virtual Place placeOf(const void* data, size_t bytes, bool* isNew) = 0;
  virtual void lend(uint64_t memory) = 0;
  virtual void settle(uint64_t memory, bool shared) = 0;
  // `bytes` of another rank's, until leave(). isNew: it has lent them just now,
  // maybe once more. Null: not to be had. Checks what that rank has said.
  virtual char* map(int rank, const Place& place, size_t bytes, bool isNew) = 0;
  // After a failure, of this rank's own, which touches no other rank's memory
  // any more: waits until nobody else's writes are seen there. What somebody
  // may go on writing to becomes a copy of this rank's, ordinary memory from
  // now on.
  virtual void withdraw(const Place& place, size_t bytes) noexcept = 0;
  // Some of it has become a copy since placeOf(), as another context's
  // operation has failed in the same pages: what others have written there may
  // be lost.
  virtual bool isWithdrawn(const Place& place, size_t bytes) = 0;
  // This rank's call fails, though it has said that it is through: its vectors
  // may change once this has returned, which others may still read.
  virtual void letGo() noexcept = 0;
  // Whether a rank of the context had: what was read of the others' vectors
  // before this call does not count then.
  virtual bool hasLetGo() = 0;

  // ---- Ordinary memory of the others, through the kernel.

  // Whether all ranks may read each other's, as far as this one knows: all have
  // found so when they met.
  virtual bool reads() const = 0;
  // `bytes` at an address that the other rank has told. False: they are not to
  // be had.
  [[nodiscard]] virtual bool read(int rank, char* to, uint64_t from,
                                  size_t bytes) = 0;
  // It has turned out that a rank may not, as all ranks know: reads() says so
  // from now on, in all lanes.
  virtual void stopReading() = 0;
  // Whether that, the second way, takes less time than slots, the first one,
  // for about so many bytes. Used alike by all ranks.
  using ReadTrial = Trial<5, 1, 512>;
  ReadTrial& readTrial(size_t bytes) { return readTrials_[sizeClass(bytes)]; }

  // ---- Two ranks, where a chunk goes out of the place that the next one goes
  // into. Whether that takes less time in two loops, the second way, than in
  // one, for about so many bytes. Each rank for itself.
  using PassTrial = Trial<5, 2, 512>;
  PassTrial& passTrial(size_t bytes) { return passTrials_[sizeClass(bytes)]; }

  // The context has failed, or was closed.
  bool failed() const { return failed_->load(std::memory_order_acquire); }

 protected:
  static constexpr size_t kReuseBytes = 128 << 10;  // in one of the halves

  Lane() = default;
  static uint32_t bellFor(int awaited) {
    return static_cast<uint32_t>(awaited) + 1;
  }
  virtual void ring(int rank) = 0;
  // Below 1 MiB, 2, 4 and so on.
  static constexpr size_t kSizeClasses = 7;
  static size_t sizeClass(size_t bytes) {
    return std::min<size_t>(std::bit_width(bytes >> 20), kSizeClasses - 1);
  }
  // This one's thread may have been moved.
  void noteCore() {
    const auto core = static_cast<uint32_t>(sched_getcpu());
    if (core != core_) {
      core_ = core;
      cores_[rank_].store(core, std::memory_order_relaxed);
    }
  }

  int rank_ = 0;
  int size_ = 0;
  bool crowded_ = false;
  bool sleepersMakeBarriers_ = false;
  int glances_ = 1;  // without giving the core away
  size_t slotBytes_ = 0;
  LaneLine* lines_ = nullptr;
  char* slots_ = nullptr;
  // One for each rank: bellFor() whom it sleeps; 0: it does not.
  std::atomic<uint32_t>* bells_ = nullptr;
  std::atomic<uint32_t>* cores_ = nullptr;  // where each rank was seen last
  uint32_t core_ = UINT32_MAX;              // this one
  const std::atomic<bool>* failed_ = nullptr;
  // Written by the thread that is in the lane.
  std::atomic<uint64_t> round_{0};
  std::atomic<uint64_t> seen_{0};
  bool swapped_[2] = {false, false};  // slotBetween(), by half
  Said said_[2];
  HandoverCopy copyOver_;
  std::array<ReadTrial, kSizeClasses> readTrials_;
  std::array<PassTrial, kSizeClasses> passTrials_;
};

// Thread-safe.
class GLOO_API Direct {
 public:
  // More ranks than this have none.
  static constexpr int kMaxRanks = 128;

  virtual ~Direct();

  // Of every lane.
  virtual size_t slotBytes() const = 0;
  virtual bool crowded() const = 0;

  struct Entry {
    Lane* lane = nullptr;  // null: the operation goes over the links
    bool inUse = false;    // by another operation of this rank with the tag
    std::chrono::milliseconds waited{0};  // of the timeout, if at all
  };
  // An operation with this tag (see tagOf()) asks for a lane. All ranks get the
  // same one for it, or none does; it is theirs until all have left it. Null,
  // too, when the context has failed. Waits, if at all, for a few instructions
  // of another rank: if that is stopped there, the context fails after
  // `timeout`.
  virtual Entry enter(uint64_t tag, std::chrono::milliseconds timeout) = 0;
  // It begins, a few instructions later. Who leaves without has not been there.
  virtual void goOn(Lane& lane) = 0;
  virtual void leave(Lane& lane) = 0;
  // An operation that got no lane does not go over the links either: it does
  // not count among those that do. Waits as enter().
  virtual void takeBack(uint64_t tag, std::chrono::milliseconds timeout) = 0;
  // Whether an operation of this rank with the tag has begun in a lane. To be
  // called once the tag is planned for the links: who enters looks at the plans
  // before it goes on, so one of the two operations sees the other, and one
  // only is refused.
  virtual bool hasGoneOn(uint64_t tag) const = 0;
};

}  // namespace internal
GLOO_NAMESPACE_END
