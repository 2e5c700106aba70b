// Memory of a CUDA device, in memory and of this machine: the processor touches
// none of it.
#include <gmock/gmock.h>

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/real_cuda.h"
#include "tests/support/transports.h"
#include "tests/transport/ibverbs/cuda_memory.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CudaDeviceTest : public CudaMemory,
                       public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "InMemory") {
      cuda_ = std::make_unique<FakeCuda>();
      return;
    }
    SKIP_IF_MISSING("cuda", RealCuda::missing());
    cuda_ = std::make_unique<RealCuda>();
  }

  CudaDevice& cuda() { return *cuda_; }

 private:
  std::unique_ptr<CudaDevice> cuda_;
};

TEST_P(CudaDeviceTest, MessagesBetweenDevicesAreNotCopied) {
  messages(true, true);
  EXPECT_EQ(cuda().counts().copies, 0);
  EXPECT_EQ(cuda().counts().exports > 0, cuda().config().dmaBuf);
  EXPECT_EQ(cuda().counts().flushes > 0, !cuda().config().ordered);
}

TEST_P(CudaDeviceTest, MessagesFromADeviceToAHost) {
  messages(true, false);
  EXPECT_EQ(cuda().counts().copies, 0);
}

// Copied are those that left before their receive could say where it is.
TEST_P(CudaDeviceTest, MessagesFromAHostToADevice) {
  messages(false, true);
  EXPECT_EQ(cuda().counts().copies, 3);
}

TEST_P(CudaDeviceTest, MessagesOverDevicesThatTakeTheirTime) {
  devices_ = asynchronousDevices(7);
  messages(true, true);
  messages(false, true);
}

TEST_P(CudaDeviceTest, BoundBuffersOfBothKinds) {
  run([](const ContextPtr& context) {
    auto& pair = *context->getPair(1 - context->rank);
    for (const size_t bytes : kSizes) {
      Place out(context, bytes, true);
      Place in(context, bytes, context->rank == 0);
      const int slot = static_cast<int>(bytes);
      auto send = pair.createSendBuffer(slot, out.at(), bytes);
      auto recv = pair.createRecvBuffer(slot, in.at(), bytes);
      out.fill(bytes);
      send->send();
      recv->waitRecv();
      send->waitSend();
      EXPECT_TRUE(in.holds(bytes)) << bytes;
      meet(context);
    }
  });
  EXPECT_EQ(cuda().counts().copies, 0);
}

TEST_P(CudaDeviceTest, PutAndGet) {
  std::barrier<> together(2);
  std::string keys[2];
  run([&](const ContextPtr& context) {
    for (const size_t bytes : kSizes) {
      const auto own = static_cast<uint64_t>(context->rank);
      Place exported(context, bytes, true);
      Place local(context, bytes, context->rank == 0);
      keys[context->rank] = exported.buffer->getRemoteKey()->serialize();
      together.arrive_and_wait();
      const auto key = context->deserializeRemoteKey(keys[1 - context->rank]);
      local.fill(bytes + own);
      local.buffer->put(*key, 1, 0, 0, bytes);
      EXPECT_TRUE(local.buffer->waitSend());
      together.arrive_and_wait();
      EXPECT_TRUE(exported.holds(bytes + 1 - own)) << bytes;
      local.buffer->get(*key, 1, 0, 0, bytes);
      EXPECT_TRUE(local.buffer->waitSend());
      EXPECT_TRUE(local.holds(bytes + own)) << bytes;
      together.arrive_and_wait();
    }
  });
  EXPECT_EQ(cuda().counts().copies, 0);
}

TEST_P(CudaDeviceTest, PutAndGetWithTheOwnRank) {
  run([](const ContextPtr& context) {
    Place exported(context, 100, true);
    Place local(context, 100, false);
    const auto key = exported.buffer->getRemoteKey();
    local.fill(1);
    local.buffer->put(*key, 1, 0, 0, 100);
    EXPECT_TRUE(exported.holds(1));
    exported.fill(2);
    local.buffer->get(*key, 1, 0, 0, 100);
    EXPECT_TRUE(local.holds(2));
  });
}

std::string nameOfMemory() {
  return "memory of CUDA device " +
         std::to_string(CudaDevice::current()->number());
}

// Over what a device's memory cannot be reached.
void expectRefused(const DeviceMaker& maker, const std::string& name) {
  spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
    void* const memory = CudaDevice::current()->allocate(100);
    auto& pair = *context->getPair(1 - context->rank);
    const std::function<void()> uses[] = {
        [&] { context->createUnboundBuffer(memory, 100); },
        [&] { pair.createSendBuffer(1, memory, 100); },
        [&] { pair.createRecvBuffer(1, memory, 100); }};
    for (const auto& use : uses) {
      try {
        use();
        ADD_FAILURE() << name << " took memory of a device";
      } catch (const InvalidOperationException& e) {
        EXPECT_THAT(e.what(),
                    AllOf(HasSubstr(nameOfMemory()), HasSubstr(name)));
      }
    }
    meet(context);
  });
}

TEST_P(CudaDeviceTest, TransportsThatCannotReachItSaySo) {
  expectRefused(
      [] {
        return transport::tcp::CreateDevice(transport::tcp::attr("127.0.0.1"));
      },
      "tcp");
  expectRefused([] { return transport::shm::CreateDevice(); }, "shm");
}

TEST_P(CudaDeviceTest, CollectivesWorkOnHostMemoryAndSaySo) {
  spawnContexts(Mode::kThreads, fakeVerbsDevices(devices_), 2,
                [](const std::shared_ptr<Context>& context) {
                  auto* memory =
                      static_cast<float*>(CudaDevice::current()->allocate(400));
                  AllreduceOptions options(context);
                  options.setOutput(memory, 100);
                  void (*sum)(void*, const void*, const void*, size_t) =
                      &::gloo::sum<float>;
                  options.setReduceFunction(sum);
                  try {
                    allreduce(options);
                    ADD_FAILURE() << "memory of a device was reduced";
                  } catch (const InvalidOperationException& e) {
                    EXPECT_THAT(e.what(),
                                AllOf(HasSubstr("allreduce: output 0"),
                                      HasSubstr(nameOfMemory()),
                                      HasSubstr("copy it there first")));
                  }
                });
}

INSTANTIATE_TEST_SUITE_P(, CudaDeviceTest, testing::Values("InMemory", "Real"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
