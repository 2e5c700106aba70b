// What this library knows of the CUDA driver (gloo/internal/cuda.h), on a CUDA
// device of this machine.
#include <gmock/gmock.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/real_cuda.h"
#include "tests/support/transports.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::cudaDeviceOf;

constexpr size_t kBytes = 1 << 20;

class RealCudaTest : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_IF_MISSING("cuda", RealCuda::missing());
    cuda_ = std::make_unique<RealCuda>();
  }

  RealCuda& cuda() { return *cuda_; }

 private:
  std::unique_ptr<RealCuda> cuda_;
};

char* last(void* memory) { return static_cast<char*>(memory) + kBytes - 1; }

// Asked by threads that have never used CUDA, too.
TEST_F(RealCudaTest, WhoseMemoryItIs) {
  void* const own = cuda().allocate(kBytes);
  void* const pooled = cuda().allocateFromPool(kBytes);
  void* const managed = cuda().allocateManaged(kBytes);
  void* const pinned = cuda().allocatePinned(kBytes);
  std::vector<char> host(kBytes);
  std::thread([&] {
    for (void* const memory : {own, pooled}) {
      EXPECT_EQ(cudaDeviceOf(memory), cuda().number());
      EXPECT_EQ(cudaDeviceOf(last(memory)), cuda().number());
      EXPECT_FALSE(internal::isManagedCuda(memory));
    }
    for (void* const memory : {managed, pinned, static_cast<void*>(&host[0])}) {
      EXPECT_EQ(cudaDeviceOf(memory), -1);
      EXPECT_EQ(cudaDeviceOf(last(memory)), -1);
      EXPECT_EQ(internal::isManagedCuda(last(memory)), memory == managed);
    }
    EXPECT_EQ(cudaDeviceOf(nullptr), -1);
  }).join();
}

TEST_F(RealCudaTest, CopiesBetweenAllKindsOfMemory) {
  for (const size_t bytes : {size_t{1}, size_t{4097}, kBytes}) {
    void* const here = cuda().allocate(bytes);
    void* const there = cuda().allocateFromPool(bytes);
    const std::vector<char> sent = pattern(bytes, bytes);
    std::vector<char> received(bytes);
    std::thread([&] {
      const int device = cuda().number();
      EXPECT_EQ(internal::copyCuda(device, here, sent.data(), bytes), "");
      EXPECT_EQ(internal::copyCuda(device, there, here, bytes), "");
      EXPECT_EQ(internal::copyCuda(device, received.data(), there, bytes), "");
    }).join();
    EXPECT_EQ(received, sent) << bytes;
  }
}

TEST_F(RealCudaTest, MemoryOfAContextThatIsNotThePrimaryOne) {
  void* const memory = cuda().allocateElsewhere(kBytes);
  const std::vector<char> sent = pattern(1, kBytes);
  std::vector<char> received(kBytes);
  std::thread([&] {
    const int device = cuda().number();
    EXPECT_EQ(cudaDeviceOf(memory), device);
    EXPECT_EQ(internal::copyCuda(device, memory, sent.data(), kBytes), "");
    EXPECT_EQ(internal::copyCuda(device, received.data(), memory, kBytes), "");
    EXPECT_EQ(internal::flushCuda(device, memory), "");
    if (internal::canExportCuda(device)) {
      internal::DmaBuf handle;
      EXPECT_EQ(internal::exportCuda(device, memory, kBytes, &handle), "");
      EXPECT_EQ(::close(handle.fd), 0);
    }
  }).join();
  EXPECT_EQ(received, sent);
}

// As PyTorch captures graphs, in the mode that forbids most to all threads.
TEST_F(RealCudaTest, WhileAnotherThreadCapturesAStream) {
  char* const memory = static_cast<char*>(cuda().allocate(kBytes));
  std::vector<char> host(kBytes);
  const int device = cuda().number();
  const std::pair<const char*, std::function<void()>> uses[] = {
      {"look", [&] { EXPECT_EQ(cudaDeviceOf(memory), device); }},
      {"copy in",
       [&] {
         EXPECT_EQ(internal::copyCuda(device, memory, host.data(), kBytes), "");
       }},
      {"copy out",
       [&] {
         EXPECT_EQ(internal::copyCuda(device, host.data(), memory, kBytes), "");
       }},
      {"flush", [&] { EXPECT_EQ(internal::flushCuda(device, memory), ""); }},
      {"synchronise copies", [&] { internal::synchroniseCopies(memory); }},
      {"export", [&] {
         internal::DmaBuf handle;
         EXPECT_EQ(
             internal::exportCuda(device, memory, kBytes, &handle).empty(),
             internal::canExportCuda(device));
         ::close(handle.fd);
       }}};
  for (const auto& [name, use] : uses) {
    EXPECT_TRUE(cuda().duringCapture(use)) << name;
  }
}

TEST_F(RealCudaTest, WhatFailsIsSaid) {
  const int device = cuda().number();
  std::vector<char> host(8 * kBytes);
  void* const memory = cuda().allocate(1);
  void* const pooled = cuda().allocateFromPool(1);  // it has no context
  EXPECT_THAT(internal::copyCuda(4711, pooled, host.data(), 1),
              testing::StartsWith("cuDevicePrimaryCtxRetain: invalid device"));
  EXPECT_THAT(internal::copyCuda(device, memory, host.data(), host.size()),
              testing::StartsWith("cuMemcpyAsync: invalid argument"));
  EXPECT_EQ(internal::copyCuda(device, memory, host.data(), 1), "");
}

TEST_F(RealCudaTest, FlushesAndSynchronisedCopies) {
  void* const memory = cuda().allocate(kBytes);
  internal::synchroniseCopies(memory);
  EXPECT_EQ(internal::flushCuda(cuda().number(), memory), "");
  EXPECT_EQ(cuda().counts().flushes > 0, !cuda().config().ordered);
}

// The first and the last bytes of memory, which no page begins or ends with.
TEST_F(RealCudaTest, ExportsAreHandlesOfThePagesAround) {
  char* const memory = static_cast<char*>(cuda().allocate(kBytes));
  if (!internal::canExportCuda(cuda().number())) {
    internal::DmaBuf none;
    EXPECT_THAT(internal::exportCuda(cuda().number(), memory, kBytes, &none),
                testing::HasSubstr("hands out no dma-buf"));
    EXPECT_EQ(none.fd, -1);
    return;
  }
  for (char* const begin : {memory, memory + 5000}) {
    internal::DmaBuf handles[2];
    for (internal::DmaBuf& handle : handles) {
      ASSERT_EQ(internal::exportCuda(cuda().number(), begin, 100, &handle), "");
      EXPECT_TRUE(cuda().isExported(handle.fd, handle.offset,
                                    reinterpret_cast<uint64_t>(begin)));
    }
    for (const internal::DmaBuf& handle : handles) {
      EXPECT_EQ(::close(handle.fd), 0);
    }
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
