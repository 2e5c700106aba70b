// Memory of CUDA devices, by way of the CUDA driver: found, copied, and handed
// out to other devices. Nothing of CUDA is needed to build or to start: the
// driver is used where the process has loaded it, since without it there is no
// such memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

// The driver's functions and numbers as <cuda.h> has them (cuda.cc compares,
// where USE_CUDA says that the toolkit is there). Each returns a CUresult, 0
// for success; see the CUDA driver's reference.
struct CudaDriver {
  using Address = unsigned long long;
  // Attributes of a pointer, and a type of memory.
  static constexpr int kContext = 1;
  static constexpr int kMemoryType = 2;
  static constexpr int kSyncMemops = 6;
  static constexpr int kIsManaged = 8;
  static constexpr int kDeviceOrdinal = 9;
  static constexpr int kTypeDevice = 2;
  // Attributes of a device, and their values.
  static constexpr int kFlushOptions = 117;
  static constexpr int kWritesOrdering = 118;
  static constexpr int kDmaBufSupported = 124;
  static constexpr int kFlushByHost = 1;
  static constexpr int kOrderedForOwner = 100;  // also the scope of a flush
  static constexpr int kDmaBufFd = 1;           // a type of handle
  static constexpr int kNonBlocking = 1;        // of a stream
  static constexpr int kRelaxed = 2;            // a mode of captures

  int (*pointerGetAttribute)(void* data, int attribute,
                             Address address) = nullptr;
  int (*pointerSetAttribute)(const void* value, int attribute,
                             Address address) = nullptr;
  int (*deviceGetAttribute)(int* value, int attribute, int device) = nullptr;
  int (*primaryCtxRetain)(void** context, int device) = nullptr;
  int (*primaryCtxRelease)(int device) = nullptr;
  int (*ctxPushCurrent)(void* context) = nullptr;
  int (*ctxPopCurrent)(void** context) = nullptr;
  int (*streamCreate)(void** stream, unsigned flags) = nullptr;
  int (*streamDestroy)(void* stream) = nullptr;
  int (*streamSynchronize)(void* stream) = nullptr;
  int (*memcpyAsync)(Address to, Address from, size_t bytes,
                     void* stream) = nullptr;
  int (*getErrorString)(int error, const char** text) = nullptr;
  // Null in drivers before 11.7, 11.3 and 10.1.
  int (*handleForRange)(void* handle, Address address, size_t bytes, int type,
                        unsigned long long flags) = nullptr;
  int (*flushWrites)(int target, int scope) = nullptr;
  int (*exchangeCaptureMode)(int* mode) = nullptr;
};

// Null while the process has not loaded libcuda.so.1. Thread-safe; costs less
// than a microsecond.
const CudaDriver* cudaDriver();

// For tests, while nothing of this library uses CUDA memory. `driver` is
// borrowed until the next call; null: the process's own again.
void replaceCudaDriver(const CudaDriver* driver);

// The device whose memory this is; -1: none, the processor may use it (managed
// memory too).
int cudaDeviceOf(const void* ptr);

// Memory that CUDA moves between the host and its devices: the processor may
// use it, another device must not, since it knows the pages of one moment only.
bool isManagedCuda(const void* ptr);

// All of what follows is for memory of `device`, and returns what went wrong,
// empty when nothing did. Any thread; also while streams are captured.

// Either may be memory of the host. Ordered with nothing that the device does.
std::string copyCuda(int device, void* to, const void* from, size_t bytes);

// What other devices have written there is seen by kernels that start from now
// on. Does nothing where that needs nothing, or cannot be asked for.
std::string flushCuda(int device, const void* ptr);

// Whether exportCuda may succeed.
bool canExportCuda(int device);

// A handle of the pages of [ptr, ptr + bytes), which begins `offset` bytes
// behind theirs. The caller closes `fd`.
struct DmaBuf {
  int fd = -1;
  uint64_t offset = 0;
};
std::string exportCuda(int device, const void* ptr, size_t bytes, DmaBuf* out);

// Copies and sets of this memory that the driver calls synchronous wait for
// their end: what another device reads next is there. Waits for those that are
// pending. Memory of the driver's pools and of cuMemCreate cannot be told so.
void synchroniseCopies(const void* ptr);

}  // namespace internal
GLOO_NAMESPACE_END
