// Memory that processes share: a memfd without a name, allocated and sealed
// against changes of its size before anybody else sees it, so that no access to
// it can fail later, and gone when all have let go of it, however they end.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <vector>

#include "gloo/config.h"
#include "transport/base/link.h"
#include "transport/base/socket.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

// Of the system: some kernels' are larger than 4 KiB.
inline size_t pageBytes() {
  return static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

class SealedMemory final : public base::SharedMemory {
 public:
  // Makes `bytes` of it, a multiple of a page. Throws IoException at limits of
  // the system, with the remedy.
  explicit SealedMemory(size_t bytes, size_t alignment = 1);

  // What a peer has handed over. Throws IoException unless it is memory like
  // this of that size, whose pages are there to stay.
  SealedMemory(base::UniqueFd memory, size_t bytes);

  // As the memory itself says; 0: it does not.
  static size_t sizeOf(const base::UniqueFd& memory);

  ~SealedMemory() override;
  SealedMemory(const SealedMemory&) = delete;
  SealedMemory& operator=(const SealedMemory&) = delete;

  char* data() const override { return data_; }
  size_t size() const { return bytes_; }

  // Pages from `begin` to `end`, in bytes, become a copy of this process's own,
  // unless they are: what others write there after the return is not seen here.
  // What other threads of this process write meanwhile is. One thread at a
  // time. False: the system refuses.
  [[nodiscard]] bool makePrivate(size_t begin, size_t end) noexcept;
  bool isPrivate(size_t begin, size_t end) const;

  // To be handed over; gone after close().
  int descriptor() const { return memory_.get(); }
  void close() { memory_.reset(); }

 private:
  void map(size_t alignment, bool populate);
  bool copyPages(size_t first, size_t last) noexcept;

  base::UniqueFd memory_;
  const size_t bytes_;
  char* data_ = nullptr;
  std::vector<bool> private_;  // each page, once there is one
};

}  // namespace transport::shm
GLOO_NAMESPACE_END
