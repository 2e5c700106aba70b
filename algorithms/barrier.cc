#include "gloo/barrier.h"

#include "algorithms/collective.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/barrier_all_to_one.h"
#include "gloo/internal/persistent.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

void barrier(const BarrierOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const internal::CollectiveCall& call = opts.call();
  char token = 0;
  Arguments arguments = argumentsOf(call, kBarrierSlotPrefix);
  // The token stands for "heard of", so joining two of them changes no byte.
  arguments.kernel = [](void*, const void*, const void*, size_t, void*) {};
  arguments.output = &token;
  Request request;
  request.collective = Collective::kBarrier;
  request.counts.count = 1;
  request.inPlace = true;
  State::of(*call.context).run(request, arguments, &opts);
}

Barrier::Barrier(const std::shared_ptr<Context>& context)
    : Algorithm(context) {}

Barrier::~Barrier() noexcept(false) = default;

BarrierAllToAll::BarrierAllToAll(const std::shared_ptr<Context>& context)
    : Barrier(context), persistent_(internal::Persistent::barrier(context)) {}
BarrierAllToAll::~BarrierAllToAll() noexcept(false) = default;
void BarrierAllToAll::run() { persistent_->run(); }

BarrierAllToOne::BarrierAllToOne(const std::shared_ptr<Context>& context, int)
    : Barrier(context), persistent_(internal::Persistent::barrier(context)) {}
BarrierAllToOne::~BarrierAllToOne() noexcept(false) = default;
void BarrierAllToOne::run() { persistent_->run(); }

GLOO_NAMESPACE_END
