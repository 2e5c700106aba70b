// A CUDA device in memory, in place of the CUDA driver (gloo/internal/cuda.h).
// The processor may not touch its memory: who dereferences it dies. Copies, and
// devices that are let in, reach it by another mapping.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/cuda.h"

GLOO_NAMESPACE_BEGIN
namespace test {

struct FakeCudaConfig {
  bool dmaBuf = true;       // the driver hands out dma-bufs
  bool dmaBufTaken = true;  // the RDMA device registers them
  bool peerMemory = false;  // the kernel registers addresses of the device
  bool ordered = true;      // kernels see what other devices have written
};

struct FakeCudaCounts {
  std::atomic<int> copies{0};
  std::atomic<int> exports{0};
  std::atomic<int> flushes{0};
};

// Takes the driver's place while it lives. Thread-safe.
class FakeCuda {
 public:
  static constexpr int kDevice = 3;

  explicit FakeCuda(FakeCudaConfig config = {});
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;
  // Null: there is none.
  static FakeCuda* current();

  // Memory of the device; at most 64 MiB in all.
  void* allocate(size_t bytes);
  // From now on the driver says that it manages this memory of the host's.
  void manage(const void* ptr, size_t bytes);
  void write(void* to, const std::vector<char>& bytes);
  std::vector<char> read(const void* from, size_t bytes) const;

  const FakeCudaConfig& config() const { return config_; }
  FakeCudaCounts& counts() { return counts_; }
  // The next copies fail with this error.
  void failCopies(int error) { copyError_ = error; }
  int copyError() const { return copyError_; }

  // ---- For devices in memory and the driver's functions.
  bool owns(uint64_t address) const;
  bool manages(uint64_t address) const {
    return address - managed_ < managedBytes_;
  }
  // Where the processor finds what is at this address, of the device or not.
  static char* reach(uint64_t address);
  // A new descriptor of the pages that begin there; -1: they are none.
  int exportPages(uint64_t address, size_t bytes);
  // Whether such a descriptor's byte `offset` is the one at `address`.
  bool isExported(int fd, uint64_t offset, uint64_t address) const;

 private:
  const FakeCudaConfig config_;
  FakeCudaCounts counts_;
  std::atomic<int> copyError_{0};
  internal::CudaDriver driver_;
  int fd_ = -1;
  char* device_ = nullptr;   // without any access
  char* visible_ = nullptr;  // the same pages
  std::atomic<size_t> used_;
  std::atomic<uint64_t> managed_{0};
  std::atomic<size_t> managedBytes_{0};
  // The offset of what a descriptor was last exported for; ranks are threads.
  mutable std::mutex mutex_;
  std::map<int, uint64_t> exportedAt_;
};

}  // namespace test
GLOO_NAMESPACE_END
