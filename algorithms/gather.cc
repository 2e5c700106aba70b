#include "gloo/gather.h"

#include "algorithms/collective.h"
#include "gloo/common/logging.h"
#include "gloo/gatherv.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

namespace {

using internal::CollectiveCall;
using internal::Vector;

// The root's output is complete; its own part, of `elements`, begins at
// `first`.
void runGather(const CollectiveCall& call, Request& request, size_t first,
               size_t elements, const char* name) {
  Arguments arguments = argumentsOf(call, kGatherSlotPrefix);
  if (call.context->rank == call.root) {
    const Vector output = call.outputs[0];
    const size_t offset = first * call.elementSize;
    request.inPlaceOffset = offset;
    if (call.inputs.empty()) {
      request.inPlace = true;
    } else {
      requireElements(call, call.inputs[0], elements, name, "root's input");
      request.inPlace = isPartOf(output, offset, call.inputs[0], name);
    }
    arguments.output = output.data;
  }
  arguments.input = call.inputs.empty() ? nullptr : call.inputs[0].data;
  State::of(*call.context).run(request, arguments);
}

void requireGather(const CollectiveCall& call, const char* name) {
  requireRoot(call, name);
  const bool isRoot = call.context->rank == call.root;
  requireVectors(call, name, {.outputs = isRoot});
  if (isRoot) {
    requireOneOutput(call, name);
  } else {
    requireOneInput(call, name);
  }
}

}  // namespace

void gather(const GatherOptions& opts) {
  const CollectiveCall& call = opts.call();
  requireGather(call, "gather");
  Request request = requestOf(Collective::kGather, call);
  request.counts.count =
      call.context->rank == call.root
          ? elementsPerRank(call, call.outputs[0], "gather", "output")
          : call.inputs[0].bytes / call.elementSize;
  const size_t elements = request.counts.count;
  runGather(call, request, elements * static_cast<size_t>(call.context->rank),
            elements, "gather");
}

void gatherv(const GathervOptions& opts) {
  const CollectiveCall& call = opts.call();
  requireGather(call, "gatherv");
  Request request = requestOf(Collective::kGatherv, call);
  if (call.context->rank != call.root) {
    request.counts.count = call.inputs[0].bytes / call.elementSize;
    runGather(call, request, 0, 0, "gatherv");
    return;
  }
  const std::vector<size_t>& offsets = call.outputOffsets;
  const size_t rank = static_cast<size_t>(call.context->rank);
  requireCounts(call, offsets, "gatherv", "output");
  requireElements(call, call.outputs[0], offsets.back(), "gatherv", "output");
  request.counts.recvOffsets = offsets.data();
  runGather(call, request, offsets[rank], offsets[rank + 1] - offsets[rank],
            "gatherv");
}

GLOO_NAMESPACE_END
