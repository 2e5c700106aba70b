#include "algorithms/state.h"

#include <algorithm>
#include <utility>

#include "algorithms/callers_memory.h"
#include "gloo/common/error.h"
#include "gloo/context.h"
#include "gloo/internal/check.h"
#include "gloo/internal/copy.h"
#include "gloo/internal/direct.h"
#include "gloo/types.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// That nobody uses at the moment. Callers have a handful of shapes each; more
// are found again quickly enough.
constexpr size_t kMaxPlans = 128;
// Of those, how many with lists of counts, where there is no room for all: if
// they are others each time, the rest is to stay.
constexpr size_t kMaxListedPlans = kMaxPlans / 2;
// Of all of them, where there are more than a few: a step takes some 60 bytes.
constexpr size_t kMaxIdleActions = 1 << 20;
constexpr size_t kFewPlans = 8;

using internal::MemoryRange;

uint64_t nextSerial() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// With the other collectives; see tagOf().
bool hasSharedTag(uint64_t slot) {
  return slot >> 56 < internal::kFirstOwnPrefix;
}

}  // namespace

void throwTagInUse(const Request& request, uint32_t tag) {
  throw InvalidOperationException(MakeString(
      nameOf(request.collective), " tag ", tag,
      ": another call with this tag is under way on the same context; "
      "concurrent calls need distinct tags"));
}

std::chrono::milliseconds leftOf(std::chrono::milliseconds timeout,
                                 std::chrono::milliseconds waited) {
  constexpr std::chrono::milliseconds kLeast{1};
  return timeout <= timeout.zero() ? timeout
                                   : std::max(kLeast, timeout - waited);
}

Lease::~Lease() {
  if (state_ != nullptr) {
    state_->checkIn(*plan_, std::move(scratch_), std::move(copies_));
  }
}

void Lease::makeScratch() {
  if (scratch_.bytes() < plan_->scratchBytes()) {
    scratch_ = algorithms::makeScratch(state_->channel_, plan_->scratchBytes());
  }
}

char* Lease::takeCopies(size_t bytes) {
  if (bytes > 0) {
    copies_ = state_->scratchOf(bytes);
  }
  return copies_.data();
}

State::State(internal::Channel& channel, const internal::Profile& profile,
             const std::string& transport)
    : serial_(nextSerial()),
      channel_(channel),
      direct_(channel.direct()),
      selection_(profile, channel.size(), transport) {}

State::~State() = default;

State& State::of(Context& context) {
  auto& state = static_cast<State&>(context.collectiveState());
  state.origin_.check("context");
  return state;
}

Lease State::checkOut(const Request& wanted, uint64_t slot) {
  const uint64_t tag = internal::tagOf(slot);
  Lease lease = checkOutAny(overLinks(wanted), slot);
  // In this order: see Direct::hasGoneOn().
  if (direct_ != nullptr && direct_->hasGoneOn(tag)) {
    throwTagInUse(wanted, (slot >> 24) & 0xffffffff);
  }
  return lease;
}

// Without the lock a plan is made, which takes long where it has millions of
// steps, and long memory comes and goes: other calls have what they need.
Lease State::checkOutAny(const Request& request, uint64_t slot) {
  for (std::unique_ptr<Plan> made;;
       made = std::make_unique<Plan>(request, channel_.rank(), channel_.size(),
                                     selection_, channel_.eagerBytes())) {
    Scratch stale;
    Scratch scratch;
    Plan* const plan = tryToCheckOut(request, slot, made, scratch, stale);
    if (plan != nullptr) {
      Lease lease(*this, *plan, std::move(scratch));
      stale = Scratch();  // before there is more
      lease.makeScratch();
      return lease;
    }
  }
}

Plan* State::tryToCheckOut(const Request& request, uint64_t slot,
                           std::unique_ptr<Plan>& made, Scratch& scratch,
                           Scratch& stale) {
  MutexLock lock(mutex_);
  refuseIfPlanned(request, slot);
  Plan* const plan = planFor(request, made);
  if (plan == nullptr) {
    return nullptr;
  }
  if (hasSharedTag(slot)) {
    tagsInUse_.push_back(internal::tagOf(slot));
    running_++;
  }
  scratch = scratch_.take(plan->scratchBytes(), stale);
  last_ = plan;
  plan->inUse = true;
  notIdle(*plan);
  plan->slot = slot;
  plan->lastUse = ++uses_;
  return plan;
}

Scratch State::scratchOf(size_t bytes) {
  Scratch stale;
  Scratch scratch = [&] {
    MutexLock lock(mutex_);
    return scratch_.take(bytes, stale);
  }();
  stale = Scratch();  // before there is more
  return scratch.bytes() > 0 ? std::move(scratch)
                             : makeScratch(channel_, bytes);
}

void State::checkIn(Plan& plan, Scratch scratch, Scratch copies) {
  if (origin_.inherited()) {
    return;
  }
  // Destroyed without the lock.
  Scratch tooMany[2];
  std::unique_ptr<Plan> surplus;
  {
    MutexLock lock(mutex_);
    if (hasSharedTag(plan.slot)) {
      std::swap(*std::find(tagsInUse_.begin(), tagsInUse_.end(),
                           internal::tagOf(plan.slot)),
                tagsInUse_.back());
      tagsInUse_.pop_back();
      running_--;
    }
    tooMany[0] = scratch_.give(std::move(scratch));
    tooMany[1] = scratch_.give(std::move(copies));
    nowIdle(plan);
    surplus = takeSurplus();
  }
  while (surplus != nullptr) {
    surplus = nullptr;
    MutexLock lock(mutex_);
    surplus = takeSurplus();
  }
}

void State::nowIdle(Plan& plan) {
  plan.inUse = false;
  idle_++;
  idleListed_ += plan.isListed() ? 1 : 0;
  idleActions_ += plan.program().actions.size();
}

void State::notIdle(const Plan& plan) {
  idle_--;
  idleListed_ -= plan.isListed() ? 1 : 0;
  idleActions_ -= plan.program().actions.size();
}

// Objects' tags are their own, and their plans are in use all the time.
void State::refuseIfPlanned(const Request& request, uint64_t slot) const {
  if (running_ == 0 || !hasSharedTag(slot)) {
    return;
  }
  if (std::find(tagsInUse_.begin(), tagsInUse_.end(), internal::tagOf(slot)) !=
      tagsInUse_.end()) {
    throwTagInUse(request, (slot >> 24) & 0xffffffff);
  }
}

// Whether there is an idle lane may differ from run to run. Two ranks have but
// one order of operands.
Request State::overLinks(const Request& wanted) const {
  Request request = wanted;
  if (channel_.size() > 2 && isReduction(wanted.collective) &&
      isDirect(wanted)) {
    request.forced = kInOrder;
  }
  return request;
}

Plan* State::planFor(const Request& request, std::unique_ptr<Plan>& made) {
  const auto serves = [&](const Plan& plan) {
    return !plan.inUse && plan.serves(request);
  };
  if (last_ != nullptr && serves(*last_)) {
    return last_;
  }
  for (const auto& plan : plans_) {
    if (serves(*plan)) {
      return plan.get();
    }
  }
  if (made != nullptr) {
    plans_.push_back(std::move(made));
    nowIdle(*plans_.back());
    return plans_.back().get();
  }
  return nullptr;
}

// The one that was not used for longest; of those with lists, where these have
// more than their share.
std::unique_ptr<Plan> State::takeSurplus() {
  if (idle_ <= kMaxPlans &&
      (idleActions_ <= kMaxIdleActions || idle_ <= kFewPlans)) {
    return nullptr;
  }
  const bool any = idleListed_ <= kMaxListedPlans;
  auto oldest = plans_.end();
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    if (!(*it)->inUse && (any || (*it)->isListed()) &&
        (oldest == plans_.end() || (*it)->lastUse < (*oldest)->lastUse)) {
      oldest = it;
    }
  }
  std::unique_ptr<Plan> surplus = std::move(*oldest);
  plans_.erase(oldest);
  last_ = surplus.get() == last_ ? nullptr : last_;
  notIdle(*surplus);
  return surplus;
}

void State::runPlan(const Lease& lease, const Request& request,
                    const Arguments& arguments) {
  Plan& plan = lease.plan();
  char* const stage = lease.scratch();
  const MemoryRange scratch{stage, lease.scratchBytes()};
  const MemoryRange copies = lease.copies();
  const auto copiesOr = [&copies](const MemoryRange& vector) {
    return copies.bytes > 0 && copies.holds({vector.data, 0}) ? copies : vector;
  };
  Run run;
  const auto set = [&run](Memory memory, void* data, MemoryRange within) {
    run.memory[static_cast<size_t>(memory)] = static_cast<char*>(data);
    run.within[static_cast<size_t>(memory)] = within;
  };
  run.channel = &channel_;
  if (plan.copiedBytes() > 0) {
    char* const copy = stage + plan.scratchBytes() - plan.copiedBytes();
    internal::copyMemory(copy, arguments.input, plan.copiedBytes());
    set(Memory::kInput, copy, scratch);
  } else {
    set(Memory::kInput, const_cast<void*>(arguments.input),
        copiesOr(inputOf(plan, arguments)));
  }
  set(Memory::kOutput, arguments.output, copiesOr(outputOf(plan, arguments)));
  set(Memory::kStage, stage, scratch);
  set(Memory::kScratch, stage + plan.program().stageBytes, scratch);
  run.inputBlocks = arguments.inputBlocks;
  run.inputBlockBytes = request.counts.count * request.elementSize;
  run.reduce = {arguments.kernel, arguments.function, request.elementSize};
  run.own = arguments.own;
  run.slot = Slot::build(arguments.prefix, arguments.tag);
  elsewhere_.fetch_add(1, std::memory_order_relaxed);
  run.check = channel_.begin(run.slot, plan.check(), plan.details());
  run.details = plan.details().get();
  run.collective = nameOf(request.collective);
  run.algorithm = plan.algorithm().name;
  run.tag = arguments.tag;
  run.timeout = arguments.timeout;
  run.left = leftOf(arguments.timeout, arguments.waited);
  run.deadline = arguments.deadline;
  plan.executor().run(run);
}

void State::runOverLinks(const Request& request, const Arguments& arguments) {
  Lease lease = checkOut(request, Slot::build(arguments.prefix, arguments.tag));
  Arguments timed = arguments;
  timed.deadline = lease.plan().executor().deadlineAfter(
      leftOf(arguments.timeout, arguments.waited));
  const auto copied =
      CallersMemory::copiedOf(channel_, lease.plan(), arguments);
  char* const copies = lease.takeCopies(copied.bytes());
  const CallersMemory memory(channel_, lease.plan(), timed, copied, copies);
  runPlan(lease, request, memory.arguments());
  memory.finish();
}

}  // namespace algorithms
GLOO_NAMESPACE_END
