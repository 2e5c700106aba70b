#include "gloo/internal/options.h"

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/context.h"
#include "gloo/internal/cuda.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

CollectiveOptions::CollectiveOptions(const std::shared_ptr<Context>& context) {
  GLOO_ENFORCE(context != nullptr, "options of a collective need a context");
  call_.context = context;
}

CollectiveOptions::CollectiveOptions(CollectiveOptions&&) noexcept = default;
CollectiveOptions::~CollectiveOptions() = default;

void CollectiveOptions::setReduceFunction(Func fn) {
  call_.known = recognise(fn);
  call_.reduce = std::move(fn);
}

void CollectiveOptions::setReduceFunction(AverageOf average) {
  call_.known = {average.type, Reduction::kAverage,
                 kernelFor(average.type, Reduction::kAverage)};
  call_.reduce = nullptr;
}

void CollectiveOptions::setMaxSegmentSize(size_t bytes) {
  GLOO_ENFORCE(bytes > 0, "setMaxSegmentSize: a segment has at least 1 byte");
  call_.maxSegmentBytes = bytes;
}

size_t CollectiveOptions::checkedCount(int64_t count) {
  GLOO_ENFORCE(count >= 0, "a count is negative: ", count);
  return static_cast<size_t>(count);
}

void CollectiveOptions::setElement(size_t size, ElementType type) {
  GLOO_ENFORCE(call_.elementSize == 0 || call_.elementSize == size,
               "inputs and outputs have elements of ", call_.elementSize,
               " and of ", size, " bytes; use one type");
  call_.elementSize = size;
  call_.mayBeOnDevice = call_.mayBeOnDevice || cudaDriver() != nullptr;
  call_.type = type;
}

Vector CollectiveOptions::vectorOf(const Buffer& buffer) const {
  GLOO_ENFORCE(buffer != nullptr, "an input or output buffer is null");
  GLOO_ENFORCE(buffer->size % call_.elementSize == 0, "a buffer of ",
               buffer->size, " bytes does not hold whole elements of ",
               call_.elementSize, " bytes");
  return {buffer->ptr, buffer->size};
}

void CollectiveOptions::addInput(Buffer buffer) {
  call_.inputs.add(vectorOf(buffer));
  inputBuffers_.push_back(std::move(buffer));
}

void CollectiveOptions::addOutput(Buffer buffer) {
  call_.outputs.add(vectorOf(buffer));
  outputBuffers_.push_back(std::move(buffer));
}

}  // namespace internal
GLOO_NAMESPACE_END
