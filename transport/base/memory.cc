#include "transport/base/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <sstream>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "gloo/internal/cuda.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

namespace {

// Filled at start-up, read on every buffer creation: no lock needed.
constexpr size_t kMaxFinders = 8;
std::array<std::atomic<MemoryKindFinder>, kMaxFinders> finders;
std::atomic<size_t> finderCount{0};

}  // namespace

std::string MemoryKind::str() const {
  switch (where) {
    case Where::kShared:
      return "shared memory";
    case Where::kCuda:
      return MakeString("memory of CUDA device ", device);
    case Where::kHost:
      break;
  }
  return "host memory";
}

MemoryKind memoryKindOf(const void* ptr, size_t bytes) {
  MemoryKind kind;
  if (ptr == nullptr || bytes == 0) {
    return kind;
  }
  const size_t count =
      std::min(finderCount.load(std::memory_order_acquire), kMaxFinders);
  for (size_t i = count; i-- > 0;) {
    const MemoryKindFinder finder = finders[i].load(std::memory_order_acquire);
    if (finder != nullptr && finder(ptr, bytes, &kind)) {
      return kind;
    }
  }
  if (const int device = internal::cudaDeviceOf(ptr); device >= 0) {
    return {MemoryKind::Where::kCuda, device};
  }
  return MemoryKind{};
}

MemoryKind memoryKindOfBuffer(const void* ptr, size_t bytes) {
  GLOO_ENFORCE(ptr != nullptr || bytes == 0, "a buffer of ", bytes,
               " bytes at a null pointer");
  const MemoryKind kind = memoryKindOf(ptr, bytes);
  if (kind.where == MemoryKind::Where::kCuda) {
    internal::synchroniseCopies(ptr);
  }
  return kind;
}

void requireUnmanaged(const void* ptr) {
  if (internal::isManagedCuda(ptr)) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION(
        "The RDMA device cannot reach managed memory of CUDA: it would go on "
        "using the pages of this moment after CUDA has moved them. Copy it to "
        "host memory first, or use memory of the device (cudaMalloc)");
  }
}

void addMemoryKindFinder(MemoryKindFinder finder) {
  const size_t at = finderCount.fetch_add(1, std::memory_order_acq_rel);
  if (at >= kMaxFinders) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("more than ", kMaxFinders,
                                           " finders of memory kinds");
  }
  finders[at].store(finder, std::memory_order_release);
}

// A line is "from-to rwxp ...", in hexadecimal; they ascend.
bool mayWrite(const void* ptr, size_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(ptr);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream in(line);
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char to = 0;
    std::string rights;
    in >> std::hex >> begin >> to >> end >> rights;
    if (in && begin < from + bytes && from < end && rights[1] != 'w') {
      return false;
    }
  }
  return true;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
