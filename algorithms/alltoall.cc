#include "gloo/alltoall.h"

#include "algorithms/collective.h"
#include "gloo/alltoallv.h"
#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

namespace {

using internal::CollectiveCall;

void runAlltoall(const internal::CollectiveOptions& opts, Request& request,
                 const char* name) {
  const CollectiveCall& call = opts.call();
  Arguments arguments = argumentsOf(call, kAlltoallSlotPrefix);
  arguments.output = call.outputs[0].data;
  arguments.input = arguments.output;
  // What comes in would overwrite what has not left yet.
  request.copiesInput =
      call.inputs.empty() || isPartOf(call.outputs[0], 0, call.inputs[0], name);
  if (!request.copiesInput) {
    arguments.input = call.inputs[0].data;
  }
  State::of(*call.context).run(request, arguments, &opts);
}

}  // namespace

void alltoall(const AlltoallOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const CollectiveCall& call = opts.call();
  requireVectors(call, "alltoall");
  requireOneOutput(call, "alltoall");
  Request request = requestOf(Collective::kAlltoall, call);
  request.counts.count =
      elementsPerRank(call, call.outputs[0], "alltoall", "output");
  if (!call.inputs.empty()) {
    requireElements(call, call.inputs[0],
                    call.outputs[0].bytes / call.elementSize, "alltoall",
                    "input");
  }
  runAlltoall(opts, request, "alltoall");
}

void alltoallv(const AlltoallvOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const CollectiveCall& call = opts.call();
  requireVectors(call, "alltoallv");
  requireOneOutput(call, "alltoallv");
  requireCounts(call, call.outputOffsets, "alltoallv", "output");
  requireElements(call, call.outputs[0], call.outputOffsets.back(), "alltoallv",
                  "output");
  Request request = requestOf(Collective::kAlltoallv, call);
  request.counts.sendOffsets = request.counts.recvOffsets =
      call.outputOffsets.data();
  if (!call.inputs.empty()) {
    requireCounts(call, call.inputOffsets, "alltoallv", "input");
    requireElements(call, call.inputs[0], call.inputOffsets.back(), "alltoallv",
                    "input");
    request.counts.sendOffsets = call.inputOffsets.data();
  }
  const size_t rank = static_cast<size_t>(call.context->rank);
  const auto own = [rank](const size_t* offsets) {
    return offsets[rank + 1] - offsets[rank];
  };
  GLOO_ENFORCE_EQ(own(request.counts.sendOffsets),
                  own(request.counts.recvOffsets),
                  "alltoallv: a rank's counts for itself differ between input "
                  "and output");
  runAlltoall(opts, request, "alltoallv");
}

GLOO_NAMESPACE_END
