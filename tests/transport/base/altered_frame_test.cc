// What a peer may not send over a link that can write.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::FrameHeader;
using transport::base::FrameType;

// What both ranks say, one after the other, when a frame is altered.
std::string whatIsSaidOf(const std::function<void(FrameHeader&)>& alter) {
  FakeOptions options;
  options.shape = FakeShape::kPush;
  options.watch->alterAtFrame = 1;
  options.watch->alter = alter;
  std::mutex mutex;
  std::string all;
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    try {
      auto device = fakeDevices(options)();
      auto context = device->createContext(seat.rank, 2);
      context->setTimeout(std::chrono::seconds(10));
      context->createAndConnectAllPairs(seat.store);
      meet(context);
    } catch (const IoException& e) {
      const std::lock_guard<std::mutex> lock(mutex);
      all += e.what();
    }
  });
  return all;
}

// They might be meant for the memory of another device.
TEST(PushingTest, FramesBringNoBytesThatCouldHaveBeenWritten) {
  const std::string text = whatIsSaidOf([](FrameHeader& header) {
    header.type = FrameType::kData;
    header.flags |= transport::base::kBound;
  });
  EXPECT_NE(text.find("could have written"), std::string::npos) << text;
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
