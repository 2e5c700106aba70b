#include "algorithms/collective.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "gloo/common/logging.h"
#include "gloo/internal/copy.h"
#include "gloo/internal/cuda.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

using internal::Vector;
using internal::Vectors;

void requireList(const Vectors& vectors, const char* collective,
                 const char* what) {
  for (size_t i = 0; i < vectors.size(); i++) {
    const Vector& vector = vectors[i];
    GLOO_ENFORCE(vector.data != nullptr || vector.bytes == 0, collective, ": ",
                 what, " ", i, " is null");
    if (i > 0) {
      GLOO_ENFORCE_EQ(vector.bytes, vectors[0].bytes, collective, ": ", what,
                      " ", i, " has another length than ", what, " 0");
    }
  }
}

void requireHostMemory(const Vectors& vectors, const char* collective,
                       const char* what) {
  for (size_t i = 0; i < vectors.size(); i++) {
    const int device = internal::cudaDeviceOf(vectors[i].data);
    GLOO_ENFORCE(device < 0, collective, ": ", what, " ", i,
                 " is memory of CUDA device ", device,
                 ", but collectives work on host memory; copy it there first");
  }
}

// An empty one has no byte in common with another, wherever it points to.
bool areApart(const Vector& a, const Vector& b) {
  const auto beginA = reinterpret_cast<uintptr_t>(a.data);
  const auto beginB = reinterpret_cast<uintptr_t>(b.data);
  return a.bytes == 0 || b.bytes == 0 || beginA + a.bytes <= beginB ||
         beginB + b.bytes <= beginA;
}

// Whether all are, by looking at neighbours.
bool areSortedApart(const Vectors& vectors) {
  std::vector<Vector> sorted;
  sorted.reserve(vectors.size());
  for (size_t i = 0; i < vectors.size(); i++) {
    sorted.push_back(vectors[i]);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Vector& a, const Vector& b) {
    return std::less<>()(a.data, b.data);
  });
  return std::adjacent_find(sorted.begin(), sorted.end(),
                            [](const Vector& a, const Vector& b) {
                              return !areApart(a, b);
                            }) == sorted.end();
}

// Each output is written as if it were the only one.
void requireApart(const Vectors& outputs, const char* collective) {
  constexpr size_t kFew = 16;
  if (outputs.size() > kFew && areSortedApart(outputs)) {
    return;
  }
  for (size_t i = 1; i < outputs.size(); i++) {
    for (size_t k = 0; k < i; k++) {
      GLOO_ENFORCE(areApart(outputs[i], outputs[k]), collective, ": outputs ",
                   k, " and ", i, " overlap; give each memory of its own");
    }
  }
}

}  // namespace

bool runAgain(const internal::CollectiveOptions& options) {
  // Nobody else prepares anything.
  const auto* const prepared =
      static_cast<const PreparedRun*>(options.changing().prepared());
  if (prepared == nullptr) {
    return false;
  }
  Context& context = *options.call().context;
  State& state = State::of(context);
  if (prepared->state != state.serial() || prepared->base != context.base) {
    return false;  // for connections that others have replaced, or another base
  }
  state.runAgain(*prepared, timeoutOf(options.call()));
  return true;
}

void requireVectors(const CollectiveCall& call, const char* collective,
                    Uses uses) {
  const auto require = [&](const Vectors& vectors, const char* what) {
    requireList(vectors, collective, what);
    if (call.mayBeOnDevice) {
      requireHostMemory(vectors, collective, what);
    }
  };
  if (uses.inputs) {
    require(call.inputs, "input");
  }
  if (uses.outputs) {
    require(call.outputs, "output");
    requireApart(call.outputs, collective);
  }
}

void requireRoot(const CollectiveCall& call, const char* collective) {
  GLOO_ENFORCE(call.root >= 0 && call.root < call.context->size, collective,
               ": root ", call.root, " is not a rank; set one of 0..",
               call.context->size - 1, " with setRoot");
}

void requireReduceFunction(const CollectiveCall& call, const char* collective) {
  GLOO_ENFORCE(call.reduce != nullptr || call.known.kernel != nullptr,
               collective, ": no reduce function; call setReduceFunction");
  const size_t size = internal::elementBytes(call.known.type);
  GLOO_ENFORCE(size == 0 || size == call.elementSize, collective,
               ": the reduce function is for ",
               internal::nameOf(call.known.type), ", but elements have ",
               call.elementSize, " bytes");
  // (Of other reductions a caller may know that it works on the bytes.)
  GLOO_ENFORCE(
      !isAverage(call) || call.type == internal::ElementType::kUnknown ||
          call.type == call.known.type,
      collective, ": the average is for ", internal::nameOf(call.known.type),
      ", but elements are ", internal::nameOf(call.type));
}

void requireNoOverlap(const Vector& input, const Vector& output,
                      const char* collective) {
  GLOO_ENFORCE(input.data == output.data || areApart(input, output), collective,
               ": input and output overlap; use the same memory or other");
}

void requireOneInput(const CollectiveCall& call, const char* collective) {
  GLOO_ENFORCE(!call.inputs.empty(), collective, ": no input; call setInput");
}

void requireOneOutput(const CollectiveCall& call, const char* collective) {
  GLOO_ENFORCE(!call.outputs.empty(), collective,
               ": no output; call setOutput");
}

void requireCounts(const CollectiveCall& call,
                   const std::vector<size_t>& offsets, const char* collective,
                   const char* what) {
  const size_t ranks = static_cast<size_t>(call.context->size);
  GLOO_ENFORCE_EQ(offsets.empty() ? 0 : offsets.size() - 1, ranks, collective,
                  ": the ", what, " has not one count for each of the ", ranks,
                  " ranks");
}

size_t elementsPerRank(const CollectiveCall& call, const Vector& vector,
                       const char* collective, const char* what) {
  const size_t elements = vector.bytes / call.elementSize;
  const size_t ranks = static_cast<size_t>(call.context->size);
  GLOO_ENFORCE_EQ(elements % ranks, size_t{0}, collective, ": the ", what,
                  " has ", elements, " elements, which is no multiple of the ",
                  ranks, " ranks");
  return elements / ranks;
}

void requireElements(const CollectiveCall& call, const Vector& vector,
                     size_t elements, const char* collective,
                     const char* what) {
  GLOO_ENFORCE_EQ(vector.bytes / call.elementSize, elements, collective,
                  ": the ", what, " must have ", elements, " elements");
}

bool isPartOf(const Vector& output, size_t offset, const Vector& input,
              const char* collective) {
  if (input.data != nullptr && output.data != nullptr &&
      input.data == static_cast<char*>(output.data) + offset) {
    return true;
  }
  GLOO_ENFORCE(areApart(input, output), collective,
               ": input and output overlap; where the operation is in place, "
               "the input of this rank begins at byte ",
               offset, " of the output");
  return false;
}

const char* algorithmFor(const CollectiveCall& call, size_t bytes) {
  // A vector up to this long is not worth dividing among the ranks, whatever it
  // was asked for: between two ranks that is two exchanges instead of one.
  constexpr size_t kShortBytes = 16 * 1024;
  return call.algorithm != nullptr || bytes <= kShortBytes
             ? call.algorithm
             : call.algorithmOfLong;
}

Request requestOf(Collective collective, const CollectiveCall& call) {
  Request request;
  request.collective = collective;
  request.type = call.type;
  request.reduction = call.known.reduction;
  request.elementSize = call.elementSize;
  request.root = std::max(0, call.root);
  request.maxSegmentBytes = call.maxSegmentBytes;
  request.forced = call.algorithm;
  request.radix = call.context->base;
  return request;
}

std::chrono::milliseconds timeoutOf(const CollectiveCall& call) {
  return call.timeout == transport::UnboundBuffer::kUnsetTimeout
             ? call.context->getTimeout()
             : call.timeout;
}

Arguments argumentsOf(const CollectiveCall& call, uint8_t prefix) {
  Arguments arguments;
  arguments.function = call.reduce != nullptr ? &call.reduce : nullptr;
  arguments.kernel = call.known.kernel;
  arguments.prefix = prefix;
  arguments.tag = call.tag;
  arguments.timeout = timeoutOf(call);
  return arguments;
}

Reducer reducerOf(const CollectiveCall& call) {
  return {call.known.kernel, &call.reduce, call.elementSize};
}

bool isAverage(const CollectiveCall& call) {
  return call.known.reduction == internal::Reduction::kAverage;
}

void copyToAll(const Vectors& outputs) {
  for (size_t i = 1; i < outputs.size() && outputs[i].bytes > 0; i++) {
    internal::copyMemory(outputs[i].data, outputs[0].data, outputs[0].bytes);
  }
}

void divideIfAverage(const CollectiveCall& call, void* data, size_t bytes,
                     size_t contributions) {
  if (!isAverage(call)) {
    return;
  }
  const internal::DivideKernel divide =
      internal::divideKernelFor(call.known.type);
  GLOO_ENFORCE(divide != nullptr, "an average of ",
               internal::nameOf(call.known.type), " is not defined");
  divide(data, bytes / call.elementSize, contributions);
}

}  // namespace algorithms
GLOO_NAMESPACE_END
