// What kind of memory a pointer refers to: found once, when a buffer is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

struct MemoryKind {
  enum class Where : uint8_t {
    kHost,    // ordinary memory; the library may read and write it
    kShared,  // from our shared allocator: local peers have it mapped
    kCuda,    // memory of CUDA device `device`: never dereferenced
  };
  Where where = Where::kHost;
  int device = 0;

  std::string str() const;
  bool operator==(const MemoryKind&) const = default;
};

// Whose memory it is, CUDA's number of the device; -1: the host's, which may be
// dereferenced.
inline int deviceOf(const MemoryKind& kind) {
  return kind.where == MemoryKind::Where::kCuda ? kind.device : -1;
}

// The kind of [ptr, ptr + bytes). Null and unknown pointers are host memory.
// Thread-safe.
MemoryKind memoryKindOf(const void* ptr, size_t bytes);

// The same for memory that a buffer is made over: a device's is told to finish
// copies before their calls return. Not under a lock: that waits for what is
// pending.
MemoryKind memoryKindOfBuffer(const void* ptr, size_t bytes);

// Throws InvalidOperationException for memory that CUDA moves: an RDMA device
// must not have it.
void requireUnmanaged(const void* ptr);

// Whether this process may write to all of that memory of the host, as far as
// proc(5) tells; true where it does not. Thread-safe.
bool mayWrite(const void* ptr, size_t bytes);

// A finder looks at a pointer and says whether it knows it. Transports and the
// CUDA support add theirs at start-up; later ones are asked first.
using MemoryKindFinder = bool (*)(const void* ptr, size_t bytes,
                                  MemoryKind* kind);
void addMemoryKindFinder(MemoryKindFinder finder);

}  // namespace transport::base
GLOO_NAMESPACE_END
