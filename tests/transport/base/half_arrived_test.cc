// A message of which half has arrived when its receiver closes the pair.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class HalfArrivedTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 900;  // eager

  // Rank 1 sends a message, of which half arrives in rank 0's `in`. The
  // sender is called with its device's lock.
  void run(const std::function<void(const ContextPtr&, Message& in)>& receiver,
           const std::function<void(transport::base::Pair&)>& sender) {
    spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
      auto device = fakeDevices(options_)();
      auto context = device->createContext(seat.rank, 2);
      context->setTimeout(std::chrono::seconds(20));
      context->createAndConnectAllPairs(seat.store);
      if (context->rank == 1) {
        watch().holdHalfway = true;
        Message out(context, pattern(1, kBytes));
        out.buffer->send(0, 5);
        auto& pair = dynamic_cast<transport::base::Pair&>(*context->getPair(0));
        // It does not hear of what rank 0 does: its bytes are on their way.
        const auto lock =
            dynamic_cast<transport::base::Context&>(*context).lock();
        sender(pair);
        return;
      }
      Message in(context, kBytes);
      in.buffer->recv(1, 5);
      const auto until =
          std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (!watch().isHalfway && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ASSERT_TRUE(watch().isHalfway);
      context->getPair(1)->close();
      receiver(context, in);
    });
  }
  FakeWatch& watch() { return *options_.watch; }

 private:
  FakeOptions options_;
};

TEST_F(HalfArrivedTest, TheRestDoesNotGoToMemoryThatIsTheCallersAgain) {
  std::barrier<> over(2);
  run(
      [&](const ContextPtr& context, Message& in) {
        in.buffer.reset();
        std::fill(in.bytes.begin(), in.bytes.end(), 'c');
        watch().holdHalfway = false;
        auto& internals = dynamic_cast<transport::base::Context&>(*context);
        for (int i = 0; i < 100; i++) {
          internals.poll();
        }
        EXPECT_EQ(in.bytes, std::vector<char>(kBytes, 'c'));
        over.arrive_and_wait();
      },
      [&](transport::base::Pair&) { over.arrive_and_wait(); });
}

TEST_F(HalfArrivedTest, ItsReceiveEndsWithThePeer) {
  std::barrier<> closed(2);
  run(
      [&](const ContextPtr&, Message& in) {
        closed.arrive_and_wait();
        std::string why;
        try {
          in.buffer->waitRecv();
        } catch (const IoException& e) {
          why = e.what();
        }
        EXPECT_NE(why.find("rank 0 closed its pair with rank 1"),
                  std::string::npos)
            << why;
      },
      [&](transport::base::Pair& pair) {
        closed.arrive_and_wait();
        pair.abandon();  // without a word
      });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
