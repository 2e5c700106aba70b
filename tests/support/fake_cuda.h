// A CUDA device in memory, in place of the CUDA driver (gloo/internal/cuda.h).
// The processor may not touch its memory: who dereferences it dies. Copies, and
// devices that are let in, reach it by another mapping.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "gloo/config.h"
#include "tests/support/cuda_device.h"

GLOO_NAMESPACE_BEGIN
namespace test {

class FakeCuda final : public CudaDevice {
 public:
  static constexpr int kDevice = 3;

  explicit FakeCuda(const CudaConfig& config = {});
  ~FakeCuda() override;

  int number() const override { return kDevice; }
  // At most 64 MiB in all.
  void* allocate(size_t bytes) override;
  void move(uint64_t to, uint64_t from, size_t bytes) override;
  // From now on the driver says that it manages this memory of the host's.
  void manage(const void* ptr, size_t bytes);

  // The next copies fail with this error.
  void failCopies(int error) { copyError_ = error; }
  int copyError() const { return copyError_; }
  // Those that follow.
  void failExports(bool fail) { exportsFail_ = fail; }

  // ---- For devices in memory and the driver's functions.
  bool owns(uint64_t address) const override;
  bool manages(uint64_t address) const {
    return address - managed_ < managedBytes_;
  }
  // A new descriptor of the pages that begin there; -1: they are none.
  int exportPages(uint64_t address, size_t bytes);
  bool isExported(int fd, uint64_t offset, uint64_t address) const override;

 private:
  // Where the processor finds what is at this address, of the device or not.
  char* reach(uint64_t address) const;

  std::atomic<int> copyError_{0};
  std::atomic<bool> exportsFail_{false};
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
