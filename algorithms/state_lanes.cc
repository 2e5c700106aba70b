// Calls that run in a lane (gloo/internal/direct.h), if there is one.
#include <exception>
#include <new>
#include <utility>

#include "algorithms/direct.h"
#include "algorithms/state.h"
#include "gloo/common/string.h"
#include "gloo/context.h"
#include "gloo/internal/check.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

class LaneUse {
 public:
  LaneUse(internal::Direct& direct, uint64_t tag,
          std::chrono::milliseconds timeout)
      : direct_(direct), entry_(direct.enter(tag, timeout)) {}
  ~LaneUse() {
    if (entry_.lane != nullptr) {
      direct_.leave(*entry_.lane);
    }
  }
  LaneUse(const LaneUse&) = delete;
  LaneUse& operator=(const LaneUse&) = delete;

  const internal::Direct::Entry& entry() const { return entry_; }

 private:
  internal::Direct& direct_;
  const internal::Direct::Entry entry_;
};

}  // namespace

bool State::isDirect(const Request& request) const {
  return direct_ != nullptr &&
         !selection_.isForced(request.collective, request.forced) &&
         offersDirect(request, channel_.size(), direct_->slotBytes()) &&
         sharedBytes(request.collective, channel_.size(), request.counts,
                     request.elementSize) <=
             selection_.direct().mostOf(request.collective);
}

DirectSizes State::sizesOf(const Request& request) const {
  return algorithms::sizesOf(request, selection_.direct(), channel_.size(),
                             direct_->slotBytes(), direct_->crowded());
}

uint64_t State::beginIn(internal::Lane& lane, uint64_t slot, uint64_t check,
                        bool* announces) {
  const uint64_t tag = internal::tagOf(slot);
  const uint64_t elsewhere = elsewhere_.load(std::memory_order_relaxed);
  internal::Lane::Previous& previous = lane.previous;
  // The number of an operation that follows one in the same lane is known.
  if (previous.tag == tag && previous.elsewhere == elsewhere &&
      previous.sequence != 0) {
    *announces = !lane.repeats.match(check);
    if (!*announces) {
      lane.repeats.count();
    }
    check = internal::withSequence(check,
                                   internal::sequenceAfter(previous.sequence));
  } else {
    check = channel_.begin(slot, check, nullptr, &lane.repeats);
    if (previous.tag != tag) {
      lane.earlierRound = lane.round();
      lane.earlierTag = previous.tag;
    }
  }
  previous = {tag, elsewhere, internal::sequenceOf(check)};
  return check;
}

// `check`: its word, without a sequence number. False: there is no lane.
bool State::runDirect(const Request& request, const DirectSizes& sizes,
                      const Arguments& arguments, uint64_t check,
                      std::chrono::milliseconds* waited) {
  const uint64_t slot = Slot::build(arguments.prefix, arguments.tag);
  const uint64_t tag = internal::tagOf(slot);
  const LaneUse use(*direct_, tag, arguments.timeout);
  if (use.entry().inUse) {
    throwTagInUse(request, arguments.tag);
  }
  *waited = use.entry().waited;
  internal::Lane* const lane = use.entry().lane;
  if (lane == nullptr) {
    return false;
  }
  refuseIfOverLinks(request, slot);
  direct_->goOn(*lane);
  // It counts among those of the lane from here on, and the others wait for its
  // rounds, also where there is no memory to begin it.
  try {
    DirectRun::Word word{check, slot};
    word.check = beginIn(*lane, slot, check, &word.announces);
    DirectRun(channel_, *lane, selection_.direct(), request, sizes, arguments,
              word, *waited)
        .run();
  } catch (const std::exception& e) {
    abandon(channel_, [&] {
      return MakeString("rank ", channel_.rank(), ": ",
                        nameOf(request.collective), " tag ", arguments.tag,
                        " (direct): ", e.what());
    });
    throw;
  }
  return true;
}

// In a lane, if there is one; within one deadline.
template <typename OverLinks>
void State::runSomehow(const Request& request, const DirectSizes& sizes,
                       const Arguments& arguments, uint64_t check,
                       const OverLinks& overLinks) {
  std::chrono::milliseconds waited{0};
  if (!runDirect(request, sizes, arguments, check, &waited)) {
    Arguments rest = arguments;
    rest.waited = waited;
    overLinks(rest);
  }
}

// A call that fails once it has begun fails the context.
template <typename Run>
void State::runWithoutLane(const Arguments& arguments, const Run& run) {
  const uint64_t slot = Slot::build(arguments.prefix, arguments.tag);
  try {
    run();
  } catch (...) {
    if (channel_.failure() == nullptr) {
      direct_->takeBack(internal::tagOf(slot), arguments.timeout);
    }
    throw;
  }
}

void State::run(const Lease& lease, const Request& request,
                const Arguments& arguments) {
  if (!isDirect(request)) {
    return runPlan(lease, request, arguments);
  }
  runSomehow(request, sizesOf(request), arguments,
             checkOf(request, channel_.size(), kDirectId),
             [&](const Arguments& rest) {
               runWithoutLane(rest, [&] { runPlan(lease, request, rest); });
             });
}

void State::run(const Request& request, const Arguments& arguments,
                const internal::CollectiveOptions* options) {
  if (!isDirect(request)) {
    runOverLinks(request, arguments);
    prepare(options, request, std::nullopt, arguments, 0);
    return;
  }
  const uint64_t check = checkOf(request, channel_.size(), kDirectId);
  const DirectSizes sizes = sizesOf(request);
  runSomehow(request, sizes, arguments, check, [&](const Arguments& rest) {
    runWithoutLane(rest, [&] { runOverLinks(request, rest); });
  });
  prepare(options, request, sizes, arguments, check);
}

void State::prepare(const internal::CollectiveOptions* options,
                    const Request& request,
                    const std::optional<DirectSizes>& sizes,
                    const Arguments& arguments, uint64_t check) {
  // (Whether memory is a device's has to be found out each time.)
  if (options == nullptr || !options->changing().isRepeated() ||
      options->call().mayBeOnDevice) {
    return;
  }
  // The call has succeeded: without memory the next one does without this.
  std::unique_ptr<PreparedRun> prepared(new (std::nothrow) PreparedRun);
  if (prepared == nullptr) {
    return;
  }
  prepared->state = serial_;
  prepared->base = options->call().context->base;
  prepared->request = request;
  prepared->sizes = sizes;
  prepared->arguments = arguments;
  prepared->check = check;
  if (request.collective == Collective::kBarrier) {
    prepared->arguments.output = &prepared->token;
  }
  options->changing().prepare(std::move(prepared));
}

void State::runAgain(const PreparedRun& prepared,
                     std::chrono::milliseconds timeout) {
  Arguments arguments = prepared.arguments;
  arguments.timeout = timeout;
  if (!prepared.sizes) {
    return runOverLinks(prepared.request, arguments);
  }
  runSomehow(prepared.request, *prepared.sizes, arguments, prepared.check,
             [&](const Arguments& rest) {
               runWithoutLane(rest,
                              [&] { runOverLinks(prepared.request, rest); });
             });
}

}  // namespace algorithms
GLOO_NAMESPACE_END
