#include "gloo/reduce.h"

#include "algorithms/collective.h"
#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

void reduce(const ReduceOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const internal::CollectiveCall& call = opts.call();
  const bool isRoot = call.context->rank == call.root;
  requireRoot(call, "reduce");
  const bool usesOutput = isRoot || call.inputs.empty();
  requireVectors(call, "reduce", {.outputs = usesOutput});
  if (usesOutput) {
    requireOneOutput(call, "reduce");
  }
  requireReduceFunction(call, "reduce");
  const internal::Vector input =
      call.inputs.empty() ? call.outputs[0] : call.inputs[0];
  Arguments arguments = argumentsOf(call, kReduceSlotPrefix);
  Request request = requestOf(Collective::kReduce, call);
  request.counts.count = input.bytes / call.elementSize;
  arguments.input = input.data;
  if (isRoot) {
    const internal::Vector output = call.outputs[0];
    requireElements(call, output, request.counts.count, "reduce", "output");
    request.inPlace = isPartOf(output, 0, input, "reduce");
    arguments.output = output.data;
  }
  State::of(*call.context)
      .run(request, arguments, isAverage(call) ? nullptr : &opts);
  if (isRoot) {
    divideIfAverage(call, arguments.output, input.bytes,
                    static_cast<size_t>(call.context->size));
  }
}

GLOO_NAMESPACE_END
