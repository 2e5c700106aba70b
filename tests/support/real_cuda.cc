#include "tests/support/real_cuda.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::CudaDriver;
using Address = CudaDriver::Address;

// So far behind its begin is what allocate() returns.
constexpr size_t kShift = 512;
constexpr unsigned kManagedByAll = 1;  // CU_MEM_ATTACH_GLOBAL

CudaDriver driver;  // the process's own

RealCuda& real() { return static_cast<RealCuda&>(*CudaDevice::current()); }

// A function that only tests take from the driver.
template <typename... A>
int call(const char* name, A... arguments) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  using Function = int (*)(A...);
  const auto function =
      library == nullptr ? nullptr
                         : reinterpret_cast<Function>(::dlsym(library, name));
  return function == nullptr ? -1 : function(arguments...);
}

// As by that function, for that device.
template <typename... A>
void require(const char* name, A... arguments) {
  EXPECT_EQ(call(name, arguments...), 0) << name;
}

// The context that the CUDA runtime has is this thread's while this lives.
class Current {
 public:
  Current() {
    void* context = nullptr;
    EXPECT_EQ(driver.primaryCtxRetain(&context, 0), 0);
    EXPECT_EQ(driver.ctxPushCurrent(context), 0);
  }
  ~Current() {
    void* context = nullptr;
    EXPECT_EQ(driver.ctxPopCurrent(&context), 0);
    EXPECT_EQ(driver.primaryCtxRelease(0), 0);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

CudaDriver counted() {
  driver = *internal::cudaDriver();
  CudaDriver d = driver;
  d.memcpyAsync = [](Address to, Address from, size_t bytes, void* stream) {
    real().counts().copies++;
    return driver.memcpyAsync(to, from, bytes, stream);
  };
  d.flushWrites = [](int target, int scope) {
    real().counts().flushes++;
    return driver.flushWrites(target, scope);
  };
  d.handleForRange = [](void* handle, Address begin, size_t bytes, int type,
                        unsigned long long flags) {
    const int error = driver.handleForRange(handle, begin, bytes, type, flags);
    if (error == 0) {
      real().counts().exports++;
      real().noteExport(*static_cast<int*>(handle), begin, bytes);
    }
    return error;
  };
  return d;
}

CudaConfig found() {
  const auto has = [](int attribute) {
    int value = 0;
    EXPECT_EQ(internal::cudaDriver()->deviceGetAttribute(&value, attribute, 0),
              0);
    return value;
  };
  CudaConfig config;
  config.dmaBuf = internal::canExportCuda(0);
  config.peerMemory = !config.dmaBuf;
  config.ordered =
      has(CudaDriver::kWritesOrdering) >= CudaDriver::kOrderedForOwner;
  return config;
}

}  // namespace

std::string RealCuda::missing() {
  int devices = 0;
  if (call("cuInit", 0U) != 0 || call("cuDeviceGetCount", &devices) != 0 ||
      devices == 0) {
    return "this machine has no CUDA device";
  }
  return internal::cudaDriver() != nullptr
             ? std::string()
             : "the CUDA driver lacks functions that the library takes";
}

// Keeps the context, as the CUDA runtime does: memory goes with it.
RealCuda::RealCuda() : CudaDevice(found(), counted()) {
  void* context = nullptr;
  EXPECT_EQ(driver.primaryCtxRetain(&context, 0), 0);
}

RealCuda::~RealCuda() {
  end();
  {
    const Current current;
    for (const auto& [begin, free] : kept_) {
      require(free, static_cast<Address>(begin));
    }
  }
  if (elsewhere_ != nullptr) {
    require("cuCtxDestroy_v2", elsewhere_);  // and its memory
  }
  EXPECT_EQ(driver.primaryCtxRelease(0), 0);
}

void* RealCuda::keep(uint64_t begin, size_t bytes, const char* free) {
  const std::lock_guard<std::mutex> guard(mutex_);
  kept_.emplace_back(begin, free);
  if (bytes > 0) {
    onDevice_.push_back({begin, bytes});
  }
  return reinterpret_cast<void*>(begin);
}

void* RealCuda::allocate(size_t bytes) {
  const Current current;
  Address begin = 0;
  require("cuMemAlloc_v2", &begin, bytes + kShift);
  return static_cast<char*>(keep(begin, bytes + kShift, "cuMemFree_v2")) +
         kShift;
}

void* RealCuda::allocateManaged(size_t bytes) {
  const Current current;
  Address begin = 0;
  require("cuMemAllocManaged", &begin, bytes, kManagedByAll);
  return keep(begin, 0, "cuMemFree_v2");
}

void* RealCuda::allocatePinned(size_t bytes) {
  const Current current;
  void* begin = nullptr;
  require("cuMemHostAlloc", &begin, bytes, 0U);
  return keep(reinterpret_cast<uint64_t>(begin), 0, "cuMemFreeHost");
}

void* RealCuda::allocateFromPool(size_t bytes) {
  const Current current;
  Address begin = 0;
  void* const stream = nullptr;
  require("cuMemAllocAsync", &begin, bytes, stream);
  EXPECT_EQ(driver.streamSynchronize(stream), 0);
  return keep(begin, bytes, "cuMemFree_v2");
}

void* RealCuda::allocateElsewhere(size_t bytes) {
  require("cuCtxCreate_v2", &elsewhere_, 0U, 0);  // pushes it, too
  Address begin = 0;
  require("cuMemAlloc_v2", &begin, bytes);
  void* context = nullptr;
  EXPECT_EQ(driver.ctxPopCurrent(&context), 0);
  const std::lock_guard<std::mutex> guard(mutex_);
  onDevice_.push_back({begin, bytes});
  return reinterpret_cast<void*>(begin);
}

bool RealCuda::duringCapture(const std::function<void()>& body) {
  constexpr int kGlobal = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL
  const Current current;
  void* stream = nullptr;
  void* graph = nullptr;
  EXPECT_EQ(driver.streamCreate(&stream, CudaDriver::kNonBlocking), 0);
  require("cuStreamBeginCapture_v2", stream, kGlobal);
  std::thread(body).join();
  const bool unharmed = call("cuStreamEndCapture", stream, &graph) == 0;
  if (graph != nullptr) {
    require("cuGraphDestroy", graph);
  }
  EXPECT_EQ(driver.streamDestroy(stream), 0);
  return unharmed;
}

void RealCuda::move(uint64_t to, uint64_t from, size_t bytes) {
  const Current current;
  require("cuMemcpy", static_cast<Address>(to), static_cast<Address>(from),
          bytes);
  EXPECT_EQ(driver.streamSynchronize(nullptr), 0);  // (device to device)
}

bool RealCuda::owns(uint64_t address) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return std::any_of(onDevice_.begin(), onDevice_.end(),
                     [address](const Range& range) {
                       return address - range.begin < range.bytes;
                     });
}

void RealCuda::noteExport(int fd, uint64_t begin, size_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  exported_[fd] = {begin, bytes};
}

// The kernel says how long a dma-buf is, in its descriptor's fdinfo
// (Documentation/filesystems/proc.rst, "DMA Buffer files").
bool RealCuda::isExported(int fd, uint64_t offset, uint64_t address) const {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(fd));
  std::string line;
  uint64_t bytes = 0;
  while (std::getline(info, line)) {
    std::istringstream words(line);
    std::string key;
    if (words >> key && key == "size:") {
      words >> bytes;
    }
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto exported = exported_.find(fd);
  return exported != exported_.end() && exported->second.bytes == bytes &&
         exported->second.begin + offset == address;
}

}  // namespace test
GLOO_NAMESPACE_END
