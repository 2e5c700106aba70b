#include "gloo/internal/options.h"

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/context.h"
#include "gloo/internal/cuda.h"
#include "gloo/internal/require_timeout.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

Prepared::~Prepared() = default;

CollectiveOptions::CollectiveOptions(const std::shared_ptr<Context>& context) {
  GLOO_ENFORCE(context != nullptr, "options of a collective need a context");
  call_.change().context = context;
}

CollectiveOptions::CollectiveOptions(CollectiveOptions&&) noexcept = default;
CollectiveOptions& CollectiveOptions::operator=(CollectiveOptions&&) noexcept =
    default;
CollectiveOptions::~CollectiveOptions() = default;

void CollectiveOptions::setTimeout(std::chrono::milliseconds timeout) {
  if (timeout != transport::UnboundBuffer::kUnsetTimeout) {
    requireTimeout(timeout);
  }
  call_.change().timeout = timeout;
}

void CollectiveOptions::setReduceFunction(Func fn) {
  CollectiveCall& call = call_.change();
  call.known = recognise(fn);
  call.reduce = std::move(fn);
}

void CollectiveOptions::setReduceFunction(AverageOf average) {
  CollectiveCall& call = call_.change();
  call.known = {average.type, Reduction::kAverage,
                kernelFor(average.type, Reduction::kAverage)};
  call.reduce = nullptr;
}

void CollectiveOptions::setMaxSegmentSize(size_t bytes) {
  GLOO_ENFORCE(bytes > 0, "setMaxSegmentSize: a segment has at least 1 byte");
  call_.change().maxSegmentBytes = bytes;
}

size_t CollectiveOptions::checkedCount(int64_t count) {
  GLOO_ENFORCE(count >= 0, "a count is negative: ", count);
  return static_cast<size_t>(count);
}

void CollectiveOptions::refuseElements(size_t elements, size_t elementSize) {
  GLOO_THROW_INVALID_OPERATION_EXCEPTION(
      elements, " elements of ", elementSize,
      " bytes: no memory holds as many (was a negative count converted?)");
}

void CollectiveOptions::requireVectors(const void* ptrs, size_t count) {
  GLOO_ENFORCE(ptrs != nullptr || count == 0, count,
               " inputs or outputs, and a null pointer to their addresses");
}

CollectiveCall& CollectiveOptions::setElement(size_t size, ElementType type) {
  CollectiveCall& call = call_.change();
  GLOO_ENFORCE(call.elementSize == 0 || call.elementSize == size,
               "inputs and outputs have elements of ", call.elementSize,
               " and of ", size, " bytes; use one type");
  call.elementSize = size;
  call.mayBeOnDevice = call.mayBeOnDevice || cudaDriver() != nullptr;
  call.type = type;
  return call;
}

Vector CollectiveOptions::vectorOf(const Buffer& buffer) const {
  GLOO_ENFORCE(buffer != nullptr, "an input or output buffer is null");
  const size_t elementSize = call().elementSize;
  GLOO_ENFORCE(buffer->size % elementSize == 0, "a buffer of ", buffer->size,
               " bytes does not hold whole elements of ", elementSize,
               " bytes");
  return {buffer->ptr, buffer->size};
}

void CollectiveOptions::addInput(Buffer buffer) {
  call_.change().inputs.add(vectorOf(buffer));
  inputBuffers_.push_back(std::move(buffer));
}

void CollectiveOptions::addOutput(Buffer buffer) {
  call_.change().outputs.add(vectorOf(buffer));
  outputBuffers_.push_back(std::move(buffer));
}

}  // namespace internal
GLOO_NAMESPACE_END
