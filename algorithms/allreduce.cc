#include "gloo/allreduce.h"

#include "algorithms/collective.h"
#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

void allreduce(const AllreduceOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const internal::CollectiveCall& call = opts.call();
  GLOO_ENFORCE(!call.outputs.empty(), "allreduce: no output; call setOutput");
  requireVectors(call, "allreduce");
  requireReduceFunction(call, "allreduce");
  const internal::Vectors& inputs =
      call.inputs.empty() ? call.outputs : call.inputs;
  const internal::Vector output = call.outputs[0];
  GLOO_ENFORCE_EQ(inputs[0].bytes, output.bytes,
                  "allreduce: inputs and outputs differ in length");
  for (size_t i = 0; i < call.inputs.size(); i++) {
    requireNoOverlap(inputs[i], output, "allreduce");
    GLOO_ENFORCE(i < 2 || inputs[i].data != output.data || output.bytes == 0,
                 "allreduce: the first output is input ", i,
                 "; make it the first input, or other memory");
  }
  Arguments arguments = argumentsOf(call, kAllreduceSlotPrefix);
  arguments.input = inputs[0].data;
  arguments.output = output.data;
  if (inputs.size() > 1) {
    arguments.own = &inputs;
    arguments.input = output.data;
  }
  Request request = requestOf(Collective::kAllreduce, call);
  request.counts.count = output.bytes / call.elementSize;
  request.forced = algorithmFor(call, output.bytes);
  request.vectors = isAverage(call) ? inputs.size() : 1;
  request.inPlace = arguments.input == arguments.output;
  const bool isAll =
      inputs.size() == 1 && call.outputs.size() == 1 && !isAverage(call);
  State::of(*call.context).run(request, arguments, isAll ? &opts : nullptr);
  divideIfAverage(call, output.data, output.bytes,
                  inputs.size() * static_cast<size_t>(call.context->size));
  copyToAll(call.outputs);
}

GLOO_NAMESPACE_END
