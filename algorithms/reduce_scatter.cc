#include "gloo/reduce_scatter.h"

#include <cstring>

#include "algorithms/collective.h"
#include "gloo/common/logging.h"
#include "gloo/reduce_scatterv.h"

GLOO_NAMESPACE_BEGIN

using namespace algorithms;

namespace {

using internal::CollectiveCall;
using internal::Vector;

// This rank's part of the input, of `elements`, begins at `first`. In place it
// is reduced where it lies, and then moved to the front.
void runReduceScatter(const internal::CollectiveOptions& opts, Request& request,
                      size_t first, size_t elements, const char* name) {
  const CollectiveCall& call = opts.call();
  const bool hasInput = !call.inputs.empty();
  const Vector output = call.outputs[0];
  const Vector input = hasInput ? call.inputs[0] : output;
  const size_t bytes = elements * call.elementSize;
  Arguments arguments = argumentsOf(call, kReduceScatterSlotPrefix);
  arguments.input = input.data;
  arguments.output = output.data;
  request.inPlace = !hasInput || isPartOf(input, 0, {output.data, bytes}, name);
  request.outputOffset = request.inPlace ? first * call.elementSize : 0;
  const bool isAll = request.outputOffset == 0 && !isAverage(call);
  State::of(*call.context).run(request, arguments, isAll ? &opts : nullptr);
  if (request.outputOffset > 0 && bytes > 0) {
    std::memmove(output.data,
                 static_cast<char*>(output.data) + request.outputOffset, bytes);
  }
  divideIfAverage(call, output.data, bytes,
                  static_cast<size_t>(call.context->size));
}

void requireReduceScatter(const CollectiveCall& call, const char* name) {
  requireVectors(call, name);
  requireOneOutput(call, name);
  requireReduceFunction(call, name);
}

}  // namespace

void reduce_scatter(const ReduceScatterOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const CollectiveCall& call = opts.call();
  const bool hasInput = !call.inputs.empty();
  requireReduceScatter(call, "reduce_scatter");
  Request request = requestOf(Collective::kReduceScatter, call);
  const size_t elements =
      elementsPerRank(call, hasInput ? call.inputs[0] : call.outputs[0],
                      "reduce_scatter", hasInput ? "input" : "output");
  request.counts.count = elements;
  if (hasInput) {
    requireElements(call, call.outputs[0], elements, "reduce_scatter",
                    "output");
  }
  runReduceScatter(opts, request,
                   elements * static_cast<size_t>(call.context->rank), elements,
                   "reduce_scatter");
}

void reduce_scatterv(const ReduceScattervOptions& opts) {
  if (runAgain(opts)) {
    return;
  }
  const CollectiveCall& call = opts.call();
  const bool hasInput = !call.inputs.empty();
  const std::vector<size_t>& offsets =
      hasInput ? call.inputOffsets : call.outputOffsets;
  const char* const what = hasInput ? "input" : "output (there is no input)";
  const size_t rank = static_cast<size_t>(call.context->rank);
  requireReduceScatter(call, "reduce_scatterv");
  requireCounts(call, offsets, "reduce_scatterv", what);
  requireElements(call, hasInput ? call.inputs[0] : call.outputs[0],
                  offsets.back(), "reduce_scatterv", what);
  const size_t elements = offsets[rank + 1] - offsets[rank];
  if (hasInput) {
    requireElements(call, call.outputs[0], elements, "reduce_scatterv",
                    "output");
  }
  Request request = requestOf(Collective::kReduceScatterv, call);
  request.counts.sendOffsets = offsets.data();
  runReduceScatter(opts, request, offsets[rank], elements, "reduce_scatterv");
}

GLOO_NAMESPACE_END
