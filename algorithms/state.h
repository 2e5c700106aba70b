// What the collectives keep with a context: plans, checked out while they run,
// and scratch memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/direct_sizes.h"
#include "algorithms/plan.h"
#include "algorithms/scratch.h"
#include "algorithms/selection.h"
#include "gloo/common/thread_annotations.h"
#include "gloo/internal/channel.h"
#include "gloo/internal/collective_state.h"
#include "gloo/internal/fork.h"
#include "gloo/internal/options.h"
#include "gloo/internal/profile.h"

GLOO_NAMESPACE_BEGIN
class Context;
namespace internal {
class Lane;
}

namespace algorithms {

class State;

// A plan in use by one call, with its scratch memory. Movable; gives both back
// at the end.
class Lease {
 public:
  Lease(State& state, Plan& plan, Scratch scratch)
      : state_(&state), plan_(&plan), scratch_(std::move(scratch)) {}
  Lease(Lease&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)),
        plan_(other.plan_),
        scratch_(std::move(other.scratch_)),
        copies_(std::move(other.copies_)) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  Plan& plan() const { return *plan_; }
  char* scratch() const { return scratch_.data(); }
  size_t scratchBytes() const { return scratch_.bytes(); }

  // Memory beside that, until the end. Null: of no bytes.
  char* takeCopies(size_t bytes);
  // The plan's, where the pool had none.
  void makeScratch();
  internal::MemoryRange copies() const {
    return {copies_.data(), copies_.bytes()};
  }

  // The state is gone, and the plan with it: gives nothing back.
  void abandon() { state_ = nullptr; }

 private:
  State* state_;
  Plan* plan_;
  Scratch scratch_;
  Scratch copies_;
};

// What a run needs beside its plan. Borrowed until the run has returned.
struct Arguments {
  const void* input = nullptr;
  // Instead of `input`: a pointer to each rank's block, `count` elements each;
  // scatter only.
  const void* const* inputBlocks = nullptr;
  void* output = nullptr;
  // Several vectors whose reduction is the input: it is made in the output's
  // memory once nothing refuses the run. Null: the input is there.
  const internal::Vectors* own = nullptr;
  const internal::ReduceFunction* function = nullptr;
  internal::Kernel kernel = nullptr;  // instead of the function, if known
  uint8_t prefix = 0;                 // of the slot
  uint32_t tag = 0;
  std::chrono::milliseconds timeout{0};
  std::chrono::milliseconds waited{0};  // of it, for a lane
  // Of both, where the memory's registration belongs to the run.
  std::optional<Deadline> deadline{};
};

// Another call of this rank has the tag.
[[noreturn]] void throwTagInUse(const Request& request, uint32_t tag);

// What is left of a timeout, 1 ms at least; where there is none, none (0).
std::chrono::milliseconds leftOf(std::chrono::milliseconds timeout,
                                 std::chrono::milliseconds waited);

// A call that was checked and looked up, for those that follow with the same
// options. What it borrows lives in them. The state may be gone, when the
// context was connected anew; so this has no pointer to it.
struct PreparedRun final : internal::Prepared {
  uint64_t state = 0;  // serial number
  int base = 0;        // the context's, when it was looked up
  Request request;
  Arguments arguments;
  // Of one that is direct, where that is offered; else it is over the links.
  std::optional<DirectSizes> sizes;
  uint64_t check = 0;
  char token = 0;  // a barrier's vector
};

// Thread-safe. Goes when its context is connected anew.
class State final : public internal::CollectiveState,
                    public std::enable_shared_from_this<State> {
 public:
  // `transport`: see Selection.
  State(internal::Channel& channel, const internal::Profile& profile,
        const std::string& transport);
  ~State() override;

  // Throws InvalidOperationException in a forked child.
  static State& of(Context& context);

  // No other state of the process has had it, nor will.
  uint64_t serial() const { return serial_; }

  // Throws InvalidOperationException if another call uses the slot's tag.
  Lease checkOut(const Request& request, uint64_t slot);

  // Runs the plan of a lease, or directly, where that is offered.
  void run(const Lease& lease, const Request& request,
           const Arguments& arguments);

  // Both. `options`: of a call that these arguments are all of; null: there is
  // more to it. If they are used again, the next call can be runAgain().
  void run(const Request& request, const Arguments& arguments,
           const internal::CollectiveOptions* options = nullptr);
  // Of this state's serial number.
  void runAgain(const PreparedRun& prepared, std::chrono::milliseconds timeout);

  internal::Channel& channel() { return channel_; }
  const Selection& selection() const { return selection_; }

 private:
  friend class Lease;
  bool isDirect(const Request& request) const;
  // What is planned for the links: if it might as well run in a lane, what
  // gives the same bits there.
  Request overLinks(const Request& wanted) const;
  DirectSizes sizesOf(const Request& request) const;
  // Of an operation there, with a word that has no sequence number: as
  // Channel::begin(), unless *announces is set, which DirectRun::Word is about.
  uint64_t beginIn(internal::Lane& lane, uint64_t slot, uint64_t check,
                   bool* announces);
  // Sets *waited to what it has waited for a lane.
  bool runDirect(const Request& request, const DirectSizes& sizes,
                 const Arguments& arguments, uint64_t check,
                 std::chrono::milliseconds* waited);
  template <typename OverLinks>
  void runSomehow(const Request& request, const DirectSizes& sizes,
                  const Arguments& arguments, uint64_t check,
                  const OverLinks& overLinks);
  void runPlan(const Lease& lease, const Request& request,
               const Arguments& arguments);
  void runOverLinks(const Request& request, const Arguments& arguments);
  // There is no lane, which all ranks have noted: taken back where this one's
  // call fails before it has begun. run(): over the links.
  template <typename Run>
  void runWithoutLane(const Arguments& arguments, const Run& run);
  // If they are used again.
  void prepare(const internal::CollectiveOptions* options,
               const Request& request, const std::optional<DirectSizes>& sizes,
               const Arguments& arguments, uint64_t check);
  Lease checkOutAny(const Request& request, uint64_t slot);
  // Null: there is no plan for it yet.
  Plan* tryToCheckOut(const Request& request, uint64_t slot,
                      std::unique_ptr<Plan>& made, Scratch& scratch,
                      Scratch& stale);
  Scratch scratchOf(size_t bytes);
  void checkIn(Plan& plan, Scratch scratch, Scratch copies);
  // Throws if a call with the slot's tag is over the links.
  void refuseIfOverLinks(const Request& request, uint64_t slot) {
    if (running_.load(std::memory_order_seq_cst) > 0) {
      MutexLock lock(mutex_);
      refuseIfPlanned(request, slot);
    }
  }
  void refuseIfPlanned(const Request& request, uint64_t slot) const
      GLOO_REQUIRES(mutex_);
  // One that nobody uses: else `made`, which it takes and which may be null, as
  // the result is then.
  Plan* planFor(const Request& request, std::unique_ptr<Plan>& made)
      GLOO_REQUIRES(mutex_);
  void nowIdle(Plan& plan) GLOO_REQUIRES(mutex_);
  void notIdle(const Plan& plan) GLOO_REQUIRES(mutex_);  // used, or gone
  // One of those that are too many, to be destroyed without the lock; null:
  // they are not.
  std::unique_ptr<Plan> takeSurplus() GLOO_REQUIRES(mutex_);

  const internal::Origin origin_;
  const uint64_t serial_;
  internal::Channel& channel_;
  internal::Direct* const direct_;  // null: there is none
  const Selection selection_;
  std::atomic<uint64_t> elsewhere_{0};  // operations over the links

  Mutex mutex_;
  std::vector<std::unique_ptr<Plan>> plans_ GLOO_GUARDED_BY(mutex_);
  ScratchPool scratch_ GLOO_GUARDED_BY(mutex_);
  Plan* last_ GLOO_GUARDED_BY(mutex_) = nullptr;
  // Plans that nobody uses; those of them with lists of counts; all their
  // steps.
  size_t idle_ GLOO_GUARDED_BY(mutex_) = 0;
  size_t idleListed_ GLOO_GUARDED_BY(mutex_) = 0;
  size_t idleActions_ GLOO_GUARDED_BY(mutex_) = 0;
  // Of plans in use by calls; their number is changed under the lock.
  std::vector<uint64_t> tagsInUse_ GLOO_GUARDED_BY(mutex_);
  std::atomic<size_t> running_{0};
  uint64_t uses_ GLOO_GUARDED_BY(mutex_) = 0;
};

}  // namespace algorithms
GLOO_NAMESPACE_END
