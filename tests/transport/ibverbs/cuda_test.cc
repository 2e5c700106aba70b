// Memory of a CUDA device: whoever dereferences the fake's dies.
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
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Inline, eager, and straight into advertised memory.
const std::vector<size_t> kSizes = {1, 100, 5000, 1 << 20};

// Memory of the device or of the host, and the buffer over it.
class Place {
 public:
  Place(const ContextPtr& context, size_t bytes, bool onDevice)
      : host_(onDevice ? 0 : bytes),
        bytes_(bytes),
        at_(onDevice ? FakeCuda::current()->allocate(bytes) : host_.data()),
        buffer(context->createUnboundBuffer(at_, bytes)) {}

  void fill(uint64_t seed) {
    FakeCuda::current()->write(at_, pattern(seed, bytes_));
  }
  bool holds(uint64_t seed) const {
    return FakeCuda::current()->read(at_, bytes_) == pattern(seed, bytes_);
  }
  void* at() const { return at_; }

 private:
  std::vector<char> host_;
  size_t bytes_;
  void* at_;

 public:
  BufferPtr buffer;
};

class CudaMemoryTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  void start(FakeCudaConfig config = {}) {
    cuda_ = std::make_unique<FakeCuda>(config);
  }

  void run(const TransportFunction& body) {
    spawn(Mode::kThreads, fakeVerbsDevices(devices_), 2, body);
  }

  // A message of each size from rank 0 to rank 1, the receive first and last.
  void messages(bool fromDevice, bool toDevice) {
    run([=](const ContextPtr& context) {
      for (const size_t bytes : kSizes) {
        for (const bool receiveFirst : {true, false}) {
          if (context->rank == 0) {
            Place out(context, bytes, fromDevice);
            out.fill(bytes);
            if (receiveFirst) {
              awaitSignal(context, 1);
            }
            out.buffer->send(1, bytes);
            if (!receiveFirst) {
              signal(context, 1);
            }
            EXPECT_TRUE(out.buffer->waitSend());
          } else {
            Place in(context, bytes, toDevice);
            if (!receiveFirst) {
              awaitSignal(context, 0);
            }
            in.buffer->recv(0, bytes);
            if (receiveFirst) {
              signal(context, 0);
            }
            EXPECT_TRUE(in.buffer->waitRecv());
            EXPECT_TRUE(in.holds(bytes)) << bytes << ", " << receiveFirst;
          }
        }
      }
      meet(context);
    });
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

  FakeDevices devices_ = plainDevices();
  std::unique_ptr<FakeCuda> cuda_;
};

TEST_F(CudaMemoryTest, MessagesBetweenDevicesAreNotCopied) {
  start();
  messages(true, true);
  EXPECT_EQ(cuda_->counts().copies, 0);
  EXPECT_GT(cuda_->counts().exports, 0);
  EXPECT_EQ(cuda_->counts().flushes, 0);
}

TEST_F(CudaMemoryTest, MessagesFromADeviceToAHost) {
  start();
  messages(true, false);
  EXPECT_EQ(cuda_->counts().copies, 0);
}

// Copied are those that left before their receive could say where it is.
TEST_F(CudaMemoryTest, MessagesFromAHostToADevice) {
  start();
  messages(false, true);
  EXPECT_EQ(cuda_->counts().copies, 3);
}

// It is registered for nothing: what is copied works.
TEST_F(CudaMemoryTest, ManagedMemoryIsRefusedWhereItWouldBeRegistered) {
  start();
  constexpr size_t kBytes = 1 << 20;
  std::vector<char> managed(kBytes);
  cuda_->manage(managed.data(), kBytes);
  run([&](const ContextPtr& context) {
    if (context->rank == 1) {
      awaitSignal(context, 0);
      meet(context);
      return;
    }
    const auto buffer = context->createUnboundBuffer(managed.data(), kBytes);
    const auto refused = [](const std::function<void()>& call) {
      try {
        call();
      } catch (const InvalidOperationException& e) {
        return std::string(e.what());
      }
      return std::string("not refused");
    };
    const auto matches = AllOf(HasSubstr("managed memory of CUDA"),
                               HasSubstr("Copy it to host memory"));
    EXPECT_THAT(refused([&] { buffer->recv(1, 1, 0, kBytes); }), matches);
    EXPECT_THAT(refused([&] { buffer->send(1, 2, 0, kBytes); }), matches);
    EXPECT_THAT(refused([&] { buffer->getRemoteKey(); }), matches);
    signal(context, 1);
    meet(context);
  });
  run([&](const ContextPtr& context) {
    if (context->rank == 0) {
      const auto buffer = context->createUnboundBuffer(managed.data(), kBytes);
      managed[5] = 'm';
      buffer->send(1, 1, 5, 1);
      EXPECT_TRUE(buffer->waitSend());
    } else {
      Message in(context, 1);
      in.buffer->recv(0, 1);
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_EQ(in.bytes[0], 'm');
    }
    meet(context);
  });
}

TEST_F(CudaMemoryTest, MessagesOverDevicesThatTakeTheirTime) {
  devices_ = asynchronousDevices(7);
  start();
  messages(true, true);
  messages(false, true);
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

TEST_F(CudaMemoryTest, BoundBuffersOfBothKinds) {
  start();
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
  EXPECT_EQ(cuda_->counts().copies, 0);
}

TEST_F(CudaMemoryTest, PutAndGet) {
  start();
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
  EXPECT_EQ(cuda_->counts().copies, 0);
}

TEST_F(CudaMemoryTest, PutAndGetWithTheOwnRank) {
  start();
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

// Over what a device's memory cannot be reached.
void expectRefused(const DeviceMaker& maker, const std::string& name) {
  spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
    void* const memory = FakeCuda::current()->allocate(100);
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
        EXPECT_THAT(e.what(), AllOf(HasSubstr("memory of CUDA device 3"),
                                    HasSubstr(name)));
      }
    }
    meet(context);
  });
}

// All memory is the host's, and what is only for that of devices names what it
// would need.
TEST_F(CudaMemoryTest, WithoutTheDriverThereIsNone) {
  const int memory = 1;
  ASSERT_EQ(internal::cudaDriver(), nullptr);  // nothing here loads it
  EXPECT_EQ(internal::cudaDeviceOf(&memory), -1);
  EXPECT_FALSE(internal::canExportCuda(0));
  EXPECT_EQ(internal::flushCuda(0), "");
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

TEST_F(CudaMemoryTest, TransportsThatCannotReachItSaySo) {
  start();
  expectRefused(
      [] {
        return transport::tcp::CreateDevice(transport::tcp::attr("127.0.0.1"));
      },
      "tcp");
  expectRefused([] { return transport::shm::CreateDevice(); }, "shm");
}

TEST_F(CudaMemoryTest, CollectivesWorkOnHostMemoryAndSaySo) {
  start();
  spawnContexts(
      Mode::kThreads, fakeVerbsDevices(devices_), 2,
      [](const std::shared_ptr<Context>& context) {
        auto* memory = static_cast<float*>(FakeCuda::current()->allocate(400));
        AllreduceOptions options(context);
        options.setOutput(memory, 100);
        void (*sum)(void*, const void*, const void*, size_t) =
            &::gloo::sum<float>;
        options.setReduceFunction(sum);
        try {
          allreduce(options);
          ADD_FAILURE() << "memory of a device was reduced";
        } catch (const InvalidOperationException& e) {
          EXPECT_THAT(e.what(), AllOf(HasSubstr("allreduce: output 0"),
                                      HasSubstr("CUDA device 3"),
                                      HasSubstr("copy it there first")));
        }
      });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
