#include "gloo/internal/cuda.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "gloo/common/string.h"
#include "gloo/internal/loader.h"

#if GLOO_CHECK_CUDA_HEADER
#include <cuda.h>
#endif

GLOO_NAMESPACE_BEGIN
namespace internal {

#if GLOO_CHECK_CUDA_HEADER
using Driver = CudaDriver;
static_assert(Driver::kContext == CU_POINTER_ATTRIBUTE_CONTEXT);
static_assert(Driver::kMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(Driver::kSyncMemops == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
static_assert(Driver::kIsManaged == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(Driver::kDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(Driver::kTypeDevice == CU_MEMORYTYPE_DEVICE);
static_assert(Driver::kFlushOptions ==
              CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
static_assert(Driver::kWritesOrdering ==
              CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
static_assert(Driver::kDmaBufSupported ==
              CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
static_assert(Driver::kFlushByHost ==
              CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
static_assert(Driver::kOrderedForOwner ==
              CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
static_assert(Driver::kOrderedForOwner ==
              CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
static_assert(Driver::kDmaBufFd == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
static_assert(Driver::kNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(Driver::kRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX == 0);
static_assert(sizeof(CUdeviceptr) == sizeof(Driver::Address));
static_assert(sizeof(CUdevice) == sizeof(int));
static_assert(CUDA_SUCCESS == 0);

// Whether what is called as the one may be the other: as many parameters, and
// each of the same size, since enumerations and pointers have other names here.
// (What differs in number does not compile.)
template <typename R, typename... A, typename S, typename... B>
constexpr bool sameCall(R (*)(A...), S (*)(B...)) {
  return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B)) && ...);
}
#define GLOO_CHECK_CUDA_CALL(ours, theirs) \
  static_assert(sameCall(decltype(Driver::ours){}, decltype(&theirs){}))
GLOO_CHECK_CUDA_CALL(pointerGetAttribute, cuPointerGetAttribute);
GLOO_CHECK_CUDA_CALL(pointerSetAttribute, cuPointerSetAttribute);
GLOO_CHECK_CUDA_CALL(deviceGetAttribute, cuDeviceGetAttribute);
GLOO_CHECK_CUDA_CALL(primaryCtxRetain, cuDevicePrimaryCtxRetain);
GLOO_CHECK_CUDA_CALL(primaryCtxRelease, cuDevicePrimaryCtxRelease);
GLOO_CHECK_CUDA_CALL(ctxPushCurrent, cuCtxPushCurrent);
GLOO_CHECK_CUDA_CALL(ctxPopCurrent, cuCtxPopCurrent);
GLOO_CHECK_CUDA_CALL(streamCreate, cuStreamCreate);
GLOO_CHECK_CUDA_CALL(streamDestroy, cuStreamDestroy);
GLOO_CHECK_CUDA_CALL(streamSynchronize, cuStreamSynchronize);
GLOO_CHECK_CUDA_CALL(memcpyAsync, cuMemcpyAsync);
GLOO_CHECK_CUDA_CALL(getErrorString, cuGetErrorString);
GLOO_CHECK_CUDA_CALL(handleForRange, cuMemGetHandleForAddressRange);
GLOO_CHECK_CUDA_CALL(flushWrites, cuFlushGPUDirectRDMAWrites);
GLOO_CHECK_CUDA_CALL(exchangeCaptureMode, cuThreadExchangeStreamCaptureMode);
#undef GLOO_CHECK_CUDA_CALL
#endif

namespace {

CudaDriver::Address addressOf(const void* ptr) {
  return reinterpret_cast<uintptr_t>(ptr);
}

// A look at the libraries that the process has loaded.
struct Libraries {
  unsigned long long known = 0;  // as many at the last look
  unsigned long long ever = 0;   // have been loaded
  bool haveDriver = false;       // not looked for if there is nothing new
};

int see(dl_phdr_info* info, size_t /*bytes*/, void* to) {
  auto& libraries = *static_cast<Libraries*>(to);
  libraries.ever = info->dlpi_adds;
  if (libraries.ever == libraries.known) {
    return 1;
  }
  const char* const slash = std::strrchr(info->dlpi_name, '/');
  const char* const name = slash != nullptr ? slash + 1 : info->dlpi_name;
  libraries.haveDriver = std::strncmp(name, "libcuda.so", 10) == 0;
  return libraries.haveDriver ? 1 : 0;
}

Libraries librariesSince(unsigned long long known) {
  Libraries libraries;
  libraries.known = known;
  const LoaderLock lock;
  ::dl_iterate_phdr(&see, &libraries);
  return libraries;
}

template <typename F>
bool find(void* library, const char* symbol, F* function) {
  *function = reinterpret_cast<F>(::dlsym(library, symbol));
  return *function != nullptr;
}

// Versioned by name: what <cuda.h> calls cuCtxPushCurrent is _v2.
bool resolve(void* library, CudaDriver& d) {
  find(library, "cuMemGetHandleForAddressRange", &d.handleForRange);
  find(library, "cuFlushGPUDirectRDMAWrites", &d.flushWrites);
  find(library, "cuThreadExchangeStreamCaptureMode", &d.exchangeCaptureMode);
  return find(library, "cuPointerGetAttribute", &d.pointerGetAttribute) &&
         find(library, "cuPointerSetAttribute", &d.pointerSetAttribute) &&
         find(library, "cuDeviceGetAttribute", &d.deviceGetAttribute) &&
         find(library, "cuDevicePrimaryCtxRetain", &d.primaryCtxRetain) &&
         find(library, "cuDevicePrimaryCtxRelease_v2", &d.primaryCtxRelease) &&
         find(library, "cuCtxPushCurrent_v2", &d.ctxPushCurrent) &&
         find(library, "cuCtxPopCurrent_v2", &d.ctxPopCurrent) &&
         find(library, "cuStreamCreate", &d.streamCreate) &&
         find(library, "cuStreamDestroy_v2", &d.streamDestroy) &&
         find(library, "cuStreamSynchronize", &d.streamSynchronize) &&
         find(library, "cuMemcpyAsync", &d.memcpyAsync) &&
         find(library, "cuGetErrorString", &d.getErrorString);
}

std::atomic<const CudaDriver*> replaced{nullptr};
std::atomic<const CudaDriver*> loaded{nullptr};
std::atomic<unsigned long long> lookedAt{0};  // Libraries::ever at a look

// Takes the driver, if the process has loaded it, and keeps it loaded. Of
// threads that come at once one does: the others wait for none of them.
const CudaDriver* take() {
  auto driver = std::make_unique<CudaDriver>();
  const LoaderLock lock;
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const CudaDriver* first = nullptr;
  if (library != nullptr && resolve(library, *driver) &&
      loaded.compare_exchange_strong(first, driver.get(),
                                     std::memory_order_acq_rel)) {
    return driver.release();
  }
  if (library != nullptr) {
    ::dlclose(library);
  }
  return first;
}

// Null: there is no driver, or one that lacks what is needed, as a stub does.
const CudaDriver* look() {
  const Libraries libraries =
      librariesSince(lookedAt.load(std::memory_order_relaxed));
  const CudaDriver* const driver = libraries.haveDriver ? take() : nullptr;
  if (driver == nullptr) {
    lookedAt.store(libraries.ever, std::memory_order_relaxed);
  }
  return driver;
}

std::string errorText(const CudaDriver& driver, const char* call, int error) {
  const char* text = nullptr;
  if (driver.getErrorString(error, &text) != 0 || text == nullptr) {
    text = "unknown error";
  }
  return MakeString(call, ": ", text, " (CUDA error ", error, ")");
}

// Null: it has none of its own, as memory of the host, of pools, or of
// cuMemCreate.
void* contextOf(const CudaDriver& driver, const void* ptr) {
  void* context = nullptr;
  const int error = driver.pointerGetAttribute(&context, CudaDriver::kContext,
                                               addressOf(ptr));
  return error == 0 ? context : nullptr;
}

// While this lives, calls are allowed to the thread that another one's capture
// of a stream would forbid, and which would end that capture with an error:
// nothing that is done here belongs to it.
class Relaxed {
 public:
  explicit Relaxed(const CudaDriver& driver) : driver_(driver) {
    exchanged_ = driver_.exchangeCaptureMode != nullptr &&
                 driver_.exchangeCaptureMode(&mode_) == 0;
  }
  ~Relaxed() {
    if (exchanged_) {
      driver_.exchangeCaptureMode(&mode_);
    }
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  const CudaDriver& driver_;
  int mode_ = CudaDriver::kRelaxed;  // then the thread's own
  bool exchanged_ = false;
};

// A context of the device is the thread's while this lives: `own` if there is
// one, else the primary one, which the CUDA runtime uses. (To retain that where
// nobody else has would make one, and take what it takes of the device.)
class Current {
 public:
  Current(const CudaDriver& driver, int device, void* own)
      : driver_(driver), device_(device), relaxed_(driver) {
    void* context = own;
    if (own == nullptr) {
      retained_ = check("cuDevicePrimaryCtxRetain",
                        driver_.primaryCtxRetain(&context, device));
    }
    pushed_ =
        good() && check("cuCtxPushCurrent", driver_.ctxPushCurrent(context));
  }
  ~Current() {
    void* context = nullptr;
    if (pushed_) {
      driver_.ctxPopCurrent(&context);
    }
    if (retained_) {
      driver_.primaryCtxRelease(device_);
    }
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  // Of all calls so far; the first error counts.
  bool good() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  bool check(const char* call, int result) {
    if (result != 0 && error_.empty()) {
      error_ = errorText(driver_, call, result);
    }
    return result == 0;
  }

 private:
  const CudaDriver& driver_;
  const int device_;
  const Relaxed relaxed_;
  std::string error_;
  bool retained_ = false;
  bool pushed_ = false;
};

int attributeOf(const CudaDriver& driver, int attribute, int device) {
  int value = 0;
  return driver.deviceGetAttribute(&value, attribute, device) == 0 ? value : 0;
}

const char* const kNoDriver =
    "the CUDA driver (libcuda.so.1, a part of NVIDIA's driver) is not loaded";

}  // namespace

const CudaDriver* cudaDriver() {
  for (const auto* known : {&replaced, &loaded}) {
    if (const CudaDriver* driver = known->load(std::memory_order_acquire)) {
      return driver;
    }
  }
  return look();
}

void replaceCudaDriver(const CudaDriver* driver) {
  replaced.store(driver, std::memory_order_release);
}

int cudaDeviceOf(const void* ptr) {
  const CudaDriver* const driver = cudaDriver();
  if (driver == nullptr) {
    return -1;
  }
  unsigned type = 0;
  int device = -1;
  const auto ask = [&](void* to, int attribute) {
    return driver->pointerGetAttribute(to, attribute, addressOf(ptr)) == 0;
  };
  // Memory that CUDA does not know is an error to ask for.
  const bool isDevices =
      ask(&type, CudaDriver::kMemoryType) && type == CudaDriver::kTypeDevice &&
      !isManagedCuda(ptr) && ask(&device, CudaDriver::kDeviceOrdinal);
  return isDevices ? device : -1;
}

bool isManagedCuda(const void* ptr) {
  const CudaDriver* const driver = cudaDriver();
  unsigned managed = 0;
  return driver != nullptr &&
         driver->pointerGetAttribute(&managed, CudaDriver::kIsManaged,
                                     addressOf(ptr)) == 0 &&
         managed != 0;
}

std::string copyCuda(int device, void* to, const void* from, size_t bytes) {
  const CudaDriver* const driver = cudaDriver();
  if (driver == nullptr) {
    return kNoDriver;
  }
  // A stream of its own: the null stream would wait for the user's kernels,
  // which may wait for this message.
  void* const own = contextOf(*driver, to);
  Current current(*driver, device,
                  own != nullptr ? own : contextOf(*driver, from));
  void* stream = nullptr;
  if (!current.good() ||
      !current.check("cuStreamCreate",
                     driver->streamCreate(&stream, CudaDriver::kNonBlocking))) {
    return current.error();
  }
  current.check(
      "cuMemcpyAsync",
      driver->memcpyAsync(addressOf(to), addressOf(from), bytes, stream));
  current.check("cuStreamSynchronize", driver->streamSynchronize(stream));
  current.check("cuStreamDestroy", driver->streamDestroy(stream));
  return current.error();
}

std::string flushCuda(int device, const void* ptr) {
  const CudaDriver* const driver = cudaDriver();
  if (driver == nullptr || driver->flushWrites == nullptr ||
      attributeOf(*driver, CudaDriver::kWritesOrdering, device) >=
          CudaDriver::kOrderedForOwner ||
      (attributeOf(*driver, CudaDriver::kFlushOptions, device) &
       CudaDriver::kFlushByHost) == 0) {
    return std::string();
  }
  Current current(*driver, device, contextOf(*driver, ptr));
  if (current.good()) {
    constexpr int kCurrentContext = 0;
    current.check(
        "cuFlushGPUDirectRDMAWrites",
        driver->flushWrites(kCurrentContext, CudaDriver::kOrderedForOwner));
  }
  return current.error();
}

bool canExportCuda(int device) {
  const CudaDriver* const driver = cudaDriver();
  return driver != nullptr && driver->handleForRange != nullptr &&
         attributeOf(*driver, CudaDriver::kDmaBufSupported, device) != 0;
}

std::string exportCuda(int device, const void* ptr, size_t bytes, DmaBuf* out) {
  const CudaDriver* const driver = cudaDriver();
  if (driver == nullptr) {
    return kNoDriver;
  }
  if (!canExportCuda(device)) {
    return MakeString("CUDA device ", device,
                      " hands out no dma-buf: it takes NVIDIA's open kernel "
                      "modules, driver 515 or later, on Linux 5.12 or later");
  }
  const CudaDriver::Address page =
      static_cast<CudaDriver::Address>(::sysconf(_SC_PAGESIZE));
  const CudaDriver::Address begin = addressOf(ptr) / page * page;
  const CudaDriver::Address end =
      (addressOf(ptr) + bytes + page - 1) / page * page;
  Current current(*driver, device, contextOf(*driver, ptr));
  int fd = -1;
  if (current.good() &&
      current.check("cuMemGetHandleForAddressRange",
                    driver->handleForRange(&fd, begin, end - begin,
                                           CudaDriver::kDmaBufFd, 0))) {
    *out = {fd, addressOf(ptr) - begin};
  }
  return current.error();
}

void synchroniseCopies(const void* ptr) {
  if (const CudaDriver* const driver = cudaDriver()) {
    const Relaxed relaxed(*driver);
    const unsigned yes = 1;
    (void)driver->pointerSetAttribute(&yes, CudaDriver::kSyncMemops,
                                      addressOf(ptr));
  }
}

}  // namespace internal
GLOO_NAMESPACE_END
