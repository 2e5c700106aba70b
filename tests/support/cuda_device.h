// A CUDA device for tests, with the driver's functions counted: in memory
// (fake_cuda.h), or one that the machine has (real_cuda.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/cuda.h"

GLOO_NAMESPACE_BEGIN
namespace test {

struct CudaConfig {
  bool dmaBuf = true;       // the driver hands out dma-bufs
  bool dmaBufTaken = true;  // the RDMA device registers them
  bool peerMemory = false;  // the kernel registers addresses of the device
  bool ordered = true;      // kernels see what other devices have written
  bool primary = true;      // memory is of the runtime's context
};

struct CudaCounts {
  std::atomic<int> copies{0};
  std::atomic<int> exports{0};
  std::atomic<int> flushes{0};
};

// The one that tests use while it lives. Thread-safe.
class CudaDevice {
 public:
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  virtual ~CudaDevice() = default;
  // Null: there is none.
  static CudaDevice* current();

  virtual int number() const = 0;
  // Memory of the device until the end of this object; not at a page's begin.
  virtual void* allocate(size_t bytes) = 0;
  // What other devices do, which reach both kinds of memory.
  virtual void move(uint64_t to, uint64_t from, size_t bytes) = 0;
  void write(void* to, const std::vector<char>& bytes);
  std::vector<char> read(const void* from, size_t bytes);

  const CudaConfig& config() const { return config_; }
  CudaCounts& counts() { return counts_; }

  // ---- For RDMA devices in memory.
  virtual bool owns(uint64_t address) const = 0;
  // Whether that handle's byte `offset` is the one at `address`.
  virtual bool isExported(int fd, uint64_t offset, uint64_t address) const = 0;

 protected:
  // `driver` takes the place of the process's own.
  CudaDevice(const CudaConfig& config, const internal::CudaDriver& driver);
  // First of all at the end: the process's own driver is back.
  void end();

 private:
  const CudaConfig config_;
  const internal::CudaDriver driver_;
  CudaCounts counts_;
};

}  // namespace test
GLOO_NAMESPACE_END
