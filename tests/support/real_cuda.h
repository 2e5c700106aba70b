// A CUDA device that this machine has, with the functions that the library
// takes from the driver counted. Needs no toolkit: libcuda.so.1 is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gloo/config.h"
#include "tests/support/cuda_device.h"

GLOO_NAMESPACE_BEGIN
namespace test {

class RealCuda final : public CudaDevice {
 public:
  // Why there is none, or none that can be used; empty: there is one. From the
  // first call on, the process has the driver.
  static std::string missing();

  // REQUIRES missing().empty().
  RealCuda();
  ~RealCuda() override;

  int number() const override { return 0; }
  void* allocate(size_t bytes) override;
  // At most a few MiB, of the host and of the device by turns.
  void* allocateManaged(size_t bytes);
  // Of the host, which the driver has locked.
  void* allocatePinned(size_t bytes);
  // Of the device's memory pool, in the order of a stream.
  void* allocateFromPool(size_t bytes);
  // Of a context that the CUDA runtime does not know.
  void* allocateElsewhere(size_t bytes);
  void move(uint64_t to, uint64_t from, size_t bytes) override;
  // Runs it while another thread, whose mode is the strictest, captures a
  // stream; whether that has not been harmed.
  bool duringCapture(const std::function<void()>& body);

  bool owns(uint64_t address) const override;
  bool isExported(int fd, uint64_t offset, uint64_t address) const override;

  // ---- For the driver's functions.
  void noteExport(int fd, uint64_t begin, size_t bytes);

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t bytes = 0;
  };
  void* keep(uint64_t begin, size_t bytes, const char* free);

  mutable std::mutex mutex_;
  std::vector<Range> onDevice_;
  std::vector<std::pair<uint64_t, const char*>> kept_;  // and how it is freed
  void* elsewhere_ = nullptr;                           // the context
  std::map<int, Range> exported_;  // what each descriptor was last made for
};

}  // namespace test
GLOO_NAMESPACE_END
