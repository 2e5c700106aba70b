#include "gloo/scatter.h"

#include "algorithms/collective.h"
#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

namespace {

void requireInputs(const internal::CollectiveCall& call) {
  GLOO_ENFORCE_EQ(call.inputs.size(), static_cast<size_t>(call.context->size),
                  "scatter: the root needs one input for each rank; call "
                  "setInputs");
}

}  // namespace

void scatter(const ScatterOptions& opts) {
  const internal::CollectiveCall& call = opts.call();
  const bool isRoot = call.context->rank == call.root;
  requireRoot(call, "scatter");
  requireVectors(call, "scatter", {.inputs = isRoot});
  if (!isRoot) {
    requireOneOutput(call, "scatter");
  } else {
    requireInputs(call);
  }
  const size_t own = static_cast<size_t>(call.context->rank);
  const internal::Vector output =
      call.outputs.empty() ? call.inputs[own] : call.outputs[0];
  Arguments arguments = argumentsOf(call, kScatterSlotPrefix);
  Request request = requestOf(Collective::kScatter, call);
  request.counts.count = output.bytes / call.elementSize;
  arguments.output = output.data;
  if (isRoot) {
    requireElements(call, call.inputs[own], request.counts.count, "scatter",
                    "input");
    // Without an output, nothing is written.
    for (size_t i = 0; !call.outputs.empty() && i < call.inputs.size(); i++) {
      GLOO_ENFORCE(
          i == own || output.bytes == 0 || call.inputs[i].data != output.data,
          "scatter: the root's output is the input for rank ", i,
          "; only that for itself can be the same");
      requireNoOverlap(call.inputs[i], output, "scatter");
    }
    arguments.inputBlocks = call.inputs.pointers();
  }
  State::of(*call.context).run(request, arguments);
}

GLOO_NAMESPACE_END
