#include "gloo/broadcast.h"

#include "algorithms/collective.h"
#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

void broadcast(const BroadcastOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const internal::CollectiveCall& call = opts.call();
  requireRoot(call, "broadcast");
  const bool isRoot = call.context->rank == call.root;
  requireVectors(call, "broadcast", {.inputs = isRoot});
  const bool hasInput = isRoot && !call.inputs.empty();
  GLOO_ENFORCE(hasInput || !call.outputs.empty(),
               "broadcast: no output; call setOutput");
  const internal::Vector input = hasInput ? call.inputs[0] : call.outputs[0];
  const internal::Vector output =
      call.outputs.empty() ? call.inputs[0] : call.outputs[0];
  GLOO_ENFORCE_EQ(input.bytes, output.bytes,
                  "broadcast: input and output differ in length");
  requireNoOverlap(input, output, "broadcast");
  Arguments arguments = argumentsOf(call, kBroadcastSlotPrefix);
  arguments.input = input.data;
  arguments.output = output.data;
  Request request = requestOf(Collective::kBroadcast, call);
  request.counts.count = output.bytes / call.elementSize;
  request.inPlace = arguments.input == arguments.output;
  State::of(*call.context).run(request, arguments, &opts);
}

GLOO_NAMESPACE_END
