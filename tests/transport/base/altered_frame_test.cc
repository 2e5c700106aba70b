// What a peer may not send: bytes over a link that can write, and answers that
// come before the end.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::FrameHeader;
using transport::base::FrameType;
namespace base = transport::base;

constexpr size_t kBytes = 10 << 20;  // many frames
constexpr size_t kMostKeyBytes = 100;
constexpr uint64_t kKeySlot = 70;
constexpr uint64_t kAnswerSlot = 71;

using RankBody = std::function<void(const ContextPtr&)>;

// What the ranks say that fail, one after the other.
std::string complaints(const FakeOptions& options, const RankBody& body) {
  std::mutex mutex;
  std::string text;
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    try {
      auto device = fakeDevices(options)();
      auto context = device->createContext(seat.rank, 2);
      context->setTimeout(std::chrono::seconds(10));
      context->createAndConnectAllPairs(seat.store);
      body(context);
    } catch (const IoException& e) {
      const std::lock_guard<std::mutex> lock(mutex);
      text += e.what();
    }
  });
  return text;
}

FakeOptions altering(FakeShape shape, std::function<void(FrameHeader&)> alter) {
  FakeOptions options;
  options.shape = shape;
  options.watch->alterAtFrame = FakeWatch::kEveryFrame;
  options.watch->alter = std::move(alter);
  return options;
}

// Rank 0 exports memory; rank 1 does something with it.
void withKey(const ContextPtr& context,
             const std::function<void(transport::RemoteKey&)>& use) {
  if (context->rank == 0) {
    Message target(context, kBytes);
    const std::string key = target.buffer->getRemoteKey()->serialize();
    std::vector<char> bytes(key.begin(), key.end());
    bytes.resize(kMostKeyBytes);
    bytes.back() = static_cast<char>(key.size());
    Message message(context, std::move(bytes));
    message.buffer->send(1, kKeySlot);
    message.buffer->waitSend();
    awaitSignal(context, 1);
    Message answer(context, size_t{0});
    answer.buffer->send(1, kAnswerSlot);
    meet(context);
  } else {
    Message message(context, kMostKeyBytes);
    message.buffer->recv(0, kKeySlot);
    message.buffer->waitRecv();
    const auto key = context->deserializeRemoteKey(
        std::string(message.bytes.data(), message.bytes.back()));
    use(*key);
    meet(context);
  }
}

// They might be meant for the memory of another device.
TEST(PushingTest, FramesBringNoBytesThatCouldHaveBeenWritten) {
  FakeOptions options = altering(FakeShape::kPush, [](FrameHeader& header) {
    header.type = FrameType::kData;
    header.flags |= base::kBound;
  });
  options.watch->alterAtFrame = 1;
  const std::string text = complaints(options, meet);
  EXPECT_NE(text.find("could have written"), std::string::npos) << text;
}

// Its memory would be free while parts of it wait to be sent.
TEST(EarlyAnswerTest, APutIsNotDoneBeforeItsLastPart) {
  const FakeOptions options =
      altering(FakeShape::kStream, [](FrameHeader& header) {
        if (header.slot == kAnswerSlot && header.type == FrameType::kData) {
          header = FrameHeader{};
          header.type = FrameType::kDone;
          header.flags = base::kReply;
          header.number = uint64_t{1} << 32;  // the first request
        }
      });
  const std::string text = complaints(options, [](const ContextPtr& context) {
    withKey(context, [&](transport::RemoteKey& key) {
      Message source(context, kBytes);
      source.buffer->put(key, 0, 0, 0, kBytes);
      signal(context, 0);
      source.buffer->waitSend();
    });
  });
  EXPECT_NE(text.find("an answer to a put before its end"), std::string::npos)
      << text;
}

TEST(EarlyAnswerTest, AGetIsNotDoneWithoutItsBytes) {
  const FakeOptions options =
      altering(FakeShape::kStream, [](FrameHeader& header) {
        if (header.type == FrameType::kData && header.has(base::kReply)) {
          header.flags |= base::kLast;
        }
      });
  const std::string text = complaints(options, [](const ContextPtr& context) {
    withKey(context, [&](transport::RemoteKey& key) {
      Message target(context, kBytes);
      target.buffer->get(key, 0, 0, 0, kBytes);
      signal(context, 0);
      target.buffer->waitSend();
    });
  });
  EXPECT_NE(text.find("the end of a get before all"), std::string::npos)
      << text;
}

// Else what remembers its introduction would point to an operation that ended.
TEST(EarlyAnswerTest, AMessageIsNotReadBeforeItWasSeen) {
  const FakeOptions options =
      altering(FakeShape::kPull, [](FrameHeader& header) { header.seen = 0; });
  const std::string text = complaints(options, [](const ContextPtr& context) {
    Message message(context, size_t{20000});
    if (context->rank == 0) {
      message.buffer->send(1, 5);
      message.buffer->waitSend();
    } else {
      message.buffer->recv(0, 5);
      message.buffer->waitRecv();
    }
    meet(context);
  });
  EXPECT_NE(text.find("the end of a message that it has not seen"),
            std::string::npos)
      << text;
}

TEST(EarlyAnswerTest, WhoIsPutOffCallsAgain) {
  FakeOptions options;
  options.watch->putOff = 3;
  EXPECT_EQ(
      complaints(options, [](const ContextPtr& context) { meet(context); }),
      "");
  EXPECT_LT(options.watch->putOff, 0);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
