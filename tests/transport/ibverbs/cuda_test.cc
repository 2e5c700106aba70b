// Memory of a CUDA device, where driver or devices lack something: whoever
// dereferences the fake's dies.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_cuda.h"
#include "tests/transport/ibverbs/cuda_memory.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CudaMemoryTest : public CudaMemory {
 protected:
  void start(const CudaConfig& config = {}) {
    cuda_ = std::make_unique<FakeCuda>(config);
  }

  // What a buffer over memory of the device is refused with.
  std::string refusal() {
    std::string text;
    run([&](const ContextPtr& context) {
      if (context->rank == 0) {
        try {
          Place place(context, 100, true);
        } catch (const InvalidOperationException& e) {
          text = e.what();
        }
      }
      meet(context);
    });
    return text;
  }

  std::unique_ptr<FakeCuda> cuda_;
};

// At once, since any message may have to be written by the RDMA device, however
// short: and the context goes on.
TEST_F(CudaMemoryTest, ManagedMemoryIsRefused) {
  start();
  constexpr size_t kBytes = 1 << 20;
  std::vector<char> managed(kBytes);
  cuda_->manage(managed.data(), kBytes);
  run([&](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    const std::function<void()> uses[] = {
        [&] { context->createUnboundBuffer(managed.data(), kBytes); },
        [&] { context->createUnboundBuffer(&managed[5], 1); },
        [&] { pair.createSendBuffer(1, managed.data(), kBytes); },
        [&] { pair.createRecvBuffer(1, managed.data(), kBytes); }};
    for (const auto& use : uses) {
      EXPECT_THAT(use, testing::ThrowsMessage<InvalidOperationException>(
                           AllOf(HasSubstr("managed memory of CUDA"),
                                 HasSubstr("Copy it to host memory"))));
    }
    meet(context);
  });
}

// It would be made, for each copy, and take memory of the device.
TEST_F(CudaMemoryTest, MemoryOfAContextThatIsNotThePrimaryOne) {
  start({.ordered = false, .primary = false});
  messages(true, true);
  messages(false, true);
  EXPECT_GT(cuda_->counts().copies, 0);
  EXPECT_GT(cuda_->counts().exports, 0);
  EXPECT_GT(cuda_->counts().flushes, 0);
}

// A short receive, too: it is told where it is made.
TEST_F(CudaMemoryTest, WhatCannotBeRegisteredAgainIsRefusedWhereItIsUsed) {
  start();
  run([&](const ContextPtr& context) {
    Place place(context, 100, true);
    meet(context);
    if (context->rank == 0) {
      cuda_->failExports(true);
      EXPECT_THROW(place.buffer->recv(1, 1), InvalidOperationException);
      cuda_->failExports(false);
    }
    meet(context);
  });
}

TEST_F(CudaMemoryTest, WhatTheRdmaDeviceReachesMayChange) {
  const auto device = fakeVerbsDevices(devices_)();
  EXPECT_FALSE(device->hasGPUDirect());
  start();  // as where CUDA is used only later
  EXPECT_TRUE(device->hasGPUDirect());
}

TEST_F(CudaMemoryTest, PeerMemoryServesWhereNoDmaBufIs) {
  start({.dmaBuf = false, .peerMemory = true});
  messages(true, true);
  EXPECT_EQ(cuda_->counts().exports, 0);
}

TEST_F(CudaMemoryTest, PeerMemoryServesWhereTheRdmaDeviceTakesNoDmaBuf) {
  start({.dmaBufTaken = false, .peerMemory = true});
  messages(true, true);
}

TEST_F(CudaMemoryTest, WhatIsMissingIsNamed) {
  start({.dmaBuf = false});
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("memory of CUDA device 3"),
                    HasSubstr("hands out no dma-buf"), HasSubstr("driver 515"),
                    HasSubstr("nvidia_peermem"), HasSubstr("Bad address")));
}

TEST_F(CudaMemoryTest, AnRdmaDeviceThatTakesNoDmaBufIsNamed) {
  start({.dmaBufTaken = false});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("the RDMA device takes no dma-buf"),
                               HasSubstr("not supported")));
}

TEST_F(CudaMemoryTest, WritesAreFlushedWhereKernelsWouldMissThem) {
  start({.ordered = false});
  messages(true, true);
  EXPECT_EQ(cuda_->counts().flushes, static_cast<int>(2 * kSizes.size()));
}

TEST_F(CudaMemoryTest, ACopyThatFailsIsAnError) {
  start();
  std::string text;
  run([&](const ContextPtr& context) {
    meet(context);
    Place place(context, 100, context->rank == 1);
    if (context->rank == 0) {
      place.buffer->send(1, 1);
      EXPECT_TRUE(place.buffer->waitSend());
      signal(context, 1);
      EXPECT_THROW(awaitSignal(context, 1), IoException);
      return;
    }
    awaitSignal(context, 0);
    cuda_->failCopies(700);
    try {
      place.buffer->recv(0, 1);
      place.buffer->waitRecv();
    } catch (const IoException& e) {
      text = e.what();
    }
  });
  EXPECT_THAT(text, AllOf(HasSubstr("CUDA device 3"), HasSubstr("rank 1"),
                          HasSubstr("CUDA error 700")));
}

// All memory is the host's, and what is only for that of devices names what it
// would need.
TEST_F(CudaMemoryTest, WithoutTheDriverThereIsNone) {
  const int memory = 1;
  ASSERT_EQ(internal::cudaDriver(), nullptr);  // nothing here loads it
  EXPECT_EQ(internal::cudaDeviceOf(&memory), -1);
  EXPECT_FALSE(internal::canExportCuda(0));
  EXPECT_EQ(internal::flushCuda(0, &memory), "");
  internal::synchroniseCopies(&memory);
  int copy = 0;
  internal::DmaBuf handle;
  for (const std::string& text :
       {internal::copyCuda(0, &copy, &memory, sizeof(copy)),
        internal::exportCuda(0, &memory, sizeof(memory), &handle)}) {
    EXPECT_EQ(
        text,
        "the CUDA driver (libcuda.so.1, a part of NVIDIA's driver) is not "
        "loaded");
  }
  EXPECT_EQ(handle.fd, -1);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
