#include "gloo/allgather.h"

#include "algorithms/collective.h"
#include "gloo/allgatherv.h"
#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

namespace {

using internal::CollectiveCall;
using internal::Vector;

// This rank's part of the output, of `elements`, begins at `first`.
void runAllgather(const internal::CollectiveOptions& opts, Request& request,
                  size_t first, size_t elements, const char* name) {
  const CollectiveCall& call = opts.call();
  const Vector output = call.outputs[0];
  Arguments arguments = argumentsOf(call, kAllgatherSlotPrefix);
  request.inPlace = true;
  request.inPlaceOffset = first * call.elementSize;
  if (!call.inputs.empty()) {
    requireElements(call, call.inputs[0], elements, name, "input");
    request.inPlace =
        isPartOf(output, request.inPlaceOffset, call.inputs[0], name);
    arguments.input = call.inputs[0].data;
  }
  arguments.output = output.data;
  State::of(*call.context).run(request, arguments, &opts);
}

}  // namespace

void allgather(const AllgatherOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const CollectiveCall& call = opts.call();
  requireVectors(call, "allgather");
  requireOneOutput(call, "allgather");
  Request request = requestOf(Collective::kAllgather, call);
  const size_t elements =
      elementsPerRank(call, call.outputs[0], "allgather", "output");
  request.counts.count = elements;
  runAllgather(opts, request,
               elements * static_cast<size_t>(call.context->rank), elements,
               "allgather");
}

void allgatherv(const AllgathervOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const CollectiveCall& call = opts.call();
  const std::vector<size_t>& offsets = call.outputOffsets;
  const size_t rank = static_cast<size_t>(call.context->rank);
  requireVectors(call, "allgatherv");
  requireOneOutput(call, "allgatherv");
  requireCounts(call, offsets, "allgatherv", "output");
  requireElements(call, call.outputs[0], offsets.back(), "allgatherv",
                  "output");
  Request request = requestOf(Collective::kAllgatherv, call);
  request.counts.recvOffsets = offsets.data();
  runAllgather(opts, request, offsets[rank], offsets[rank + 1] - offsets[rank],
               "allgatherv");
}

GLOO_NAMESPACE_END
