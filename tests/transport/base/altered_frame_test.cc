// What a peer may not send over a link that can write.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <string>

#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::FrameHeader;
using transport::base::FrameType;

// They might be meant for the memory of another device.
TEST(PushingTest, FramesBringNoBytesThatCouldHaveBeenWritten) {
  FakeOptions options;
  options.shape = FakeShape::kPush;
  options.watch->alterAtFrame = 1;
  options.watch->alter = [](FrameHeader& header) {
    header.type = FrameType::kData;
    header.flags |= transport::base::kBound;
  };
  std::mutex mutex;
  std::string text;  // what both ranks say, one after the other
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    try {
      auto device = fakeDevices(options)();
      auto context = device->createContext(seat.rank, 2);
      context->setTimeout(std::chrono::seconds(10));
      context->createAndConnectAllPairs(seat.store);
      meet(context);
    } catch (const IoException& e) {
      const std::lock_guard<std::mutex> lock(mutex);
      text += e.what();
    }
  });
  EXPECT_NE(text.find("could have written"), std::string::npos) << text;
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
