// Ranks that are threads, over RDMA devices in memory, with memory of a CUDA
// device.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/cuda_device.h"
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {

// Inline, eager, and straight into advertised memory.
inline const std::vector<size_t> kSizes = {1, 100, 5000, 1 << 20};

// Memory of the device or of the host, and the buffer over it.
class Place {
 public:
  Place(const ContextPtr& context, size_t bytes, bool onDevice)
      : host_(onDevice ? 0 : bytes),
        bytes_(bytes),
        at_(onDevice ? CudaDevice::current()->allocate(bytes) : host_.data()),
        buffer(context->createUnboundBuffer(at_, bytes)) {}

  void fill(uint64_t seed) {
    CudaDevice::current()->write(at_, pattern(seed, bytes_));
  }
  bool holds(uint64_t seed) const {
    return CudaDevice::current()->read(at_, bytes_) == pattern(seed, bytes_);
  }
  void* at() const { return at_; }

 private:
  std::vector<char> host_;
  size_t bytes_;
  void* at_;

 public:
  BufferPtr buffer;
};

class CudaMemory : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

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

  FakeDevices devices_ = plainDevices();
};

}  // namespace test
GLOO_NAMESPACE_END
