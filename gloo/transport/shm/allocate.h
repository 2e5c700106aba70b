// Memory that the ranks of a host use in place: collectives on it copy nothing
// through scratch memory, long messages out of it need no system call.
// docs/shm.md says which, and how.
#pragma once

#include <cstddef>
#include <memory>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace transport {
namespace shm {

class Allocation;

// Owns memory from allocate(). It belongs to no context and may be made before
// or after they connect; a context hands it to its other ranks, processes of
// the same user on this host, at the first collective or message that gains by
// it. They write to it only the results of a collective, and nothing any more
// once that has returned or thrown. For whatever does not know of it, it is
// ordinary memory.
//
// Movable; empty after it was moved from. Const members may be called by
// several threads. Destroy it when no operation uses the memory, before or
// after the contexts. The memory is given back at once then, even if other
// ranks still have it mapped.
//
// A forked child shares the memory with its parent: what either writes, both
// see. Its destructor gives nothing back there.
class GLOO_API Memory {
 public:
  Memory() noexcept;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  // Null if empty.
  void* data() const { return data_; }
  // What was asked for, in bytes.
  size_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  friend Memory allocate(size_t bytes, size_t alignment);
  void release() noexcept;

  std::shared_ptr<Allocation> allocation_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

// Zeros. `alignment`, in bytes: a power of two, at most 1 GiB. Takes whole
// pages and one more, a file descriptor and a mapping. Throws
// InvalidOperationException for a size of 0 or another alignment, IoException
// at limits of the system: all of the memory is there when this returns.
// Thread-safe.
GLOO_API Memory allocate(size_t bytes, size_t alignment = 4096);

}  // namespace shm
}  // namespace transport
GLOO_NAMESPACE_END
