#include "tests/support/fake_cuda.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::CudaDriver;
using Address = CudaDriver::Address;

constexpr size_t kBytes = size_t{64} << 20;
// The first allocation does not begin at a page, nor do the others.
constexpr size_t kAlignment = 512;
constexpr int kInvalidValue = 1;  // CUDA_ERROR_INVALID_VALUE

FakeCuda& fake() { return static_cast<FakeCuda&>(*CudaDevice::current()); }
char primary;  // stands for a context, and for a stream
char other;    // a context that the runtime does not know
thread_local int pushed = 0;
thread_local int captureMode = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL

// As if another thread captured a stream:
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
constexpr int kCaptured = 900;
int whileCaptured(int result) {
  return captureMode == CudaDriver::kRelaxed ? result : kCaptured;
}

int pointerGetAttribute(void* data, int attribute, Address address) {
  const bool managed = fake().manages(address);
  if (!fake().owns(address) && !managed) {
    return kInvalidValue;  // as for all memory that CUDA did not make
  }
  if (attribute == CudaDriver::kContext) {
    *static_cast<void**>(data) = fake().config().primary ? &primary : &other;
    return 0;
  }
  int value = managed ? 1 : 0;
  if (attribute == CudaDriver::kMemoryType) {
    value = CudaDriver::kTypeDevice;
  } else if (attribute == CudaDriver::kDeviceOrdinal) {
    value = FakeCuda::kDevice;
  } else if (attribute != CudaDriver::kIsManaged) {
    return kInvalidValue;
  }
  std::memcpy(data, &value, sizeof(value));
  return 0;
}

int pointerSetAttribute(const void*, int attribute, Address address) {
  EXPECT_EQ(whileCaptured(0), 0);  // would end the capture
  return attribute == CudaDriver::kSyncMemops && fake().owns(address)
             ? 0
             : kInvalidValue;
}

int deviceGetAttribute(int* value, int attribute, int) {
  if (attribute == CudaDriver::kDmaBufSupported) {
    *value = fake().config().dmaBuf ? 1 : 0;
  } else if (attribute == CudaDriver::kWritesOrdering) {
    *value = fake().config().ordered ? CudaDriver::kOrderedForOwner : 0;
  } else if (attribute == CudaDriver::kFlushOptions) {
    *value = CudaDriver::kFlushByHost;
  } else {
    return kInvalidValue;
  }
  return 0;
}

// Memory has a context, in which all can be done.
int retain(void** to, int device) {
  *to = &primary;
  ADD_FAILURE() << "a context is retained";
  return device == FakeCuda::kDevice ? 0 : kInvalidValue;
}

int push(void* what) {
  pushed++;
  return what == (fake().config().primary ? &primary : &other) ? 0
                                                               : kInvalidValue;
}

int pop(void** to) {
  *to = &primary;
  return pushed-- > 0 ? 0 : kInvalidValue;
}

int copy(Address to, Address from, size_t bytes, void*) {
  if (pushed == 0) {
    return kInvalidValue;
  }
  if (const int error = fake().copyError(); error != 0) {
    return error;
  }
  fake().counts().copies++;
  fake().move(to, from, bytes);
  return whileCaptured(0);
}

int errorString(int error, const char** text) {
  *text = error == kInvalidValue ? "invalid argument" : "out of order";
  return 0;
}

int handleForRange(void* handle, Address address, size_t bytes, int type,
                   unsigned long long) {
  const int fd = type == CudaDriver::kDmaBufFd && pushed > 0
                     ? fake().exportPages(address, bytes)
                     : -1;
  std::memcpy(handle, &fd, sizeof(fd));
  return fd < 0 ? kInvalidValue : whileCaptured(0);
}

int flush(int target, int scope) {
  fake().counts().flushes++;
  return pushed > 0 && target == 0 && scope == CudaDriver::kOrderedForOwner
             ? whileCaptured(0)
             : kInvalidValue;
}

int exchangeMode(int* mode) {
  std::swap(*mode, captureMode);
  return 0;
}

CudaDriver driver() {
  CudaDriver d;
  d.pointerGetAttribute = &pointerGetAttribute;
  d.pointerSetAttribute = &pointerSetAttribute;
  d.deviceGetAttribute = &deviceGetAttribute;
  d.primaryCtxRetain = &retain;
  d.primaryCtxRelease = [](int) { return 0; };
  d.ctxPushCurrent = &push;
  d.ctxPopCurrent = &pop;
  d.streamCreate = [](void** stream, unsigned) {
    *stream = &primary;
    return whileCaptured(0);
  };
  d.streamDestroy = [](void*) { return 0; };
  d.streamSynchronize = [](void*) { return 0; };
  d.memcpyAsync = &copy;
  d.getErrorString = &errorString;
  d.handleForRange = &handleForRange;
  d.flushWrites = &flush;
  d.exchangeCaptureMode = &exchangeMode;
  return d;
}

}  // namespace

FakeCuda::FakeCuda(const CudaConfig& config)
    : CudaDevice(config, driver()), used_(kAlignment) {
  fd_ = ::memfd_create("cuda", MFD_CLOEXEC);
  EXPECT_EQ(::ftruncate(fd_, kBytes), 0);
  const auto map = [this](int protection) {
    void* const at = ::mmap(nullptr, kBytes, protection, MAP_SHARED, fd_, 0);
    EXPECT_NE(at, MAP_FAILED);
    return static_cast<char*>(at);
  };
  device_ = map(PROT_NONE);
  visible_ = map(PROT_READ | PROT_WRITE);
}

FakeCuda::~FakeCuda() {
  end();
  ::munmap(device_, kBytes);
  ::munmap(visible_, kBytes);
  ::close(fd_);
}

void* FakeCuda::allocate(size_t bytes) {
  const size_t whole = (bytes + kAlignment) / kAlignment * kAlignment;
  const size_t at = used_.fetch_add(whole);
  EXPECT_LE(at + whole, kBytes);
  return device_ + at;
}

void FakeCuda::manage(const void* ptr, size_t bytes) {
  managed_ = reinterpret_cast<uint64_t>(ptr);
  managedBytes_ = bytes;
}

void FakeCuda::move(uint64_t to, uint64_t from, size_t bytes) {
  std::memcpy(reach(to), reach(from), bytes);
}

bool FakeCuda::owns(uint64_t address) const {
  const auto begin = reinterpret_cast<uint64_t>(device_);
  return address >= begin && address < begin + kBytes;
}

char* FakeCuda::reach(uint64_t address) const {
  return owns(address)
             ? visible_ + (address - reinterpret_cast<uint64_t>(device_))
             : reinterpret_cast<char*>(address);
}

// The file's offsets stand for the handle's: it begins where the pages do.
int FakeCuda::exportPages(uint64_t address, size_t bytes) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (exportsFail_ || !owns(address) || address % page != 0 ||
      bytes % page != 0) {
    return -1;
  }
  counts().exports++;
  const int fd = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  std::lock_guard<std::mutex> guard(mutex_);
  exportedAt_[fd] = address - reinterpret_cast<uint64_t>(device_);
  return fd;
}

bool FakeCuda::isExported(int fd, uint64_t offset, uint64_t address) const {
  struct stat theirs {};
  struct stat ours {};
  std::lock_guard<std::mutex> guard(mutex_);
  const auto exported = exportedAt_.find(fd);
  return ::fstat(fd, &theirs) == 0 && ::fstat(fd_, &ours) == 0 &&
         theirs.st_ino == ours.st_ino && exported != exportedAt_.end() &&
         exported->second + offset ==
             address - reinterpret_cast<uint64_t>(device_);
}

}  // namespace test
GLOO_NAMESPACE_END
