#include "tests/support/cuda_device.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::atomic<CudaDevice*> instance{nullptr};

uint64_t addressOf(const void* ptr) { return reinterpret_cast<uint64_t>(ptr); }

}  // namespace

CudaDevice::CudaDevice(const CudaConfig& config,
                       const internal::CudaDriver& driver)
    : config_(config), driver_(driver) {
  instance = this;
  internal::replaceCudaDriver(&driver_);
}

void CudaDevice::end() {
  internal::replaceCudaDriver(nullptr);
  instance = nullptr;
}

CudaDevice* CudaDevice::current() { return instance; }

void CudaDevice::write(void* to, const std::vector<char>& bytes) {
  move(addressOf(to), addressOf(bytes.data()), bytes.size());
}

std::vector<char> CudaDevice::read(const void* from, size_t bytes) {
  std::vector<char> result(bytes);
  move(addressOf(result.data()), addressOf(from), bytes);
  return result;
}

}  // namespace test
GLOO_NAMESPACE_END
