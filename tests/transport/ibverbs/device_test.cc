// On an RDMA device: what the fakes cannot show, since they are ours.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/math.h"
#include "gloo/rendezvous/context.h"
#include "gloo/transport/ibverbs/device.h"
#include "tests/support/transports.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

class VerbsDeviceTest : public testing::Test {
 protected:
  VerbsDeviceTest() {
    ::setenv("GLOO_TEST_TRANSPORT", "ibverbs", 1);
    maker_ = chosenTransport(false).make;
  }
  void SetUp() override { SKIP_UNLESS_AVAILABLE(chosenTransport(false)); }

  void run(const TransportFunction& body, Mode mode = Mode::kThreads) const {
    spawn(mode, maker_, 2, body);
  }

  // A message there and back, of an unbound and of a bound buffer.
  static void exchange(const ContextPtr& context, size_t bytes) {
    const int peer = 1 - context->rank;
    const auto own = static_cast<uint64_t>(context->rank);
    Message out(context, pattern(bytes + own, bytes));
    Message in(context, bytes);
    in.buffer->recv(peer, bytes);
    out.buffer->send(peer, bytes);
    EXPECT_TRUE(in.buffer->waitRecv());
    EXPECT_TRUE(out.buffer->waitSend());
    EXPECT_TRUE(in.holds(bytes + 1 - own)) << bytes;
    auto& pair = *context->getPair(peer);
    std::vector<char> place(bytes);
    const int slot = static_cast<int>(bytes);  // never used before
    auto send = pair.createSendBuffer(slot, out.bytes.data(), bytes);
    auto recv = pair.createRecvBuffer(slot, place.data(), bytes);
    send->send();
    recv->waitRecv();
    send->waitSend();
    EXPECT_EQ(mismatch(bytes + 1 - own, place.data(), bytes), bytes);
    meet(context);
  }

  DeviceMaker maker_;
};

// Soft-RoCE's longest message has 8 MiB.
TEST_F(VerbsDeviceTest, SizesAroundTheLongestMessage) {
  constexpr size_t kLongest = size_t{8} << 20;
  run([](const ContextPtr& context) {
    for (const size_t bytes :
         {size_t{0}, size_t{1}, kLongest - 1, kLongest, kLongest + 1}) {
      exchange(context, bytes);
    }
  });
}

TEST_F(VerbsDeviceTest, AThousandMessagesInFlightOnOnePair) {
  run([](const ContextPtr& context) {
    constexpr size_t kMessages = 1200;
    constexpr size_t kBytes = 20000;  // some of them longer than eager ones
    const int peer = 1 - context->rank;
    const auto own = static_cast<uint64_t>(context->rank);
    Message out(context, pattern(own, kBytes));
    Message in(context, kBytes);
    const auto bytesOf = [](size_t i) {
      return i % 50 == 0 ? kBytes : i % 100;
    };
    for (size_t i = 0; i < kMessages; i++) {
      out.buffer->send(peer, i, 0, bytesOf(i));
    }
    meet(context);  // all were started before any is received
    for (size_t i = 0; i < kMessages; i++) {
      in.buffer->recv(peer, i, 0, bytesOf(i));
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_EQ(mismatch(1 - own, in.bytes.data(), bytesOf(i)), bytesOf(i));
    }
    for (size_t i = 0; i < kMessages; i++) {
      EXPECT_TRUE(out.buffer->waitSend());
    }
    meet(context);
  });
}

TEST_F(VerbsDeviceTest, AForkAfterUseHarmsNobody) {
  run(
      [](const ContextPtr& context) {
        exchange(context, 100);
        exchange(context, 1 << 20);
        Message message(context, 1 << 20);
        const pid_t child = ::fork();
        if (child == 0) {
          message.bytes.assign(message.bytes.size(), 'c');
          message.buffer.reset();
          const_cast<ContextPtr&>(context).reset();
          ::_exit(0);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        exchange(context, 101);
        exchange(context, (1 << 20) + 1);
      },
      Mode::kProcesses);
}

// Each rank starts them in another order, over a second mesh as well.
TEST_F(VerbsDeviceTest, ConcurrentCollectivesWithDifferentTags) {
  spawnContexts(
      Mode::kThreads, maker_, 2, [](const std::shared_ptr<Context>& context) {
        rendezvous::ContextFactory factory(context);
        const auto second = factory.makeContext(context->getDevice());
        constexpr uint32_t kThreads = 4;
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < kThreads; i++) {
          const uint32_t tag = context->rank == 0 ? i : kThreads - 1 - i;
          threads.emplace_back([&, tag] {
            for (const auto& mesh : {context, second}) {
              std::vector<int> data(tag % 2 == 0 ? 10 : 50000, int(tag) + 1);
              AllreduceOptions options(mesh);
              options.setTag(tag);
              options.setOutput(data.data(), data.size());
              void (*add)(void*, const void*, const void*, size_t) = &sum<int>;
              options.setReduceFunction(add);
              allreduce(options);
              EXPECT_EQ(std::count(data.begin(), data.end(), 2 * int(tag) + 2),
                        static_cast<long>(data.size()));
            }
          });
        }
        for (auto& thread : threads) {
          thread.join();
        }
      });
}

// The peer's writes are on their way when the wait ends: several, since on one
// processor Soft-RoCE may be done with the first before anybody looks.
TEST_F(VerbsDeviceTest, NoWriteReachesMemoryAfterItsReceiveHasTimedOut) {
  constexpr size_t kBytes = size_t{32} << 20;
  int timeouts = 0;
  for (const int limit : {1, 5}) {
    std::barrier<> together(2);
    run([&](const ContextPtr& context) {
      meet(context);
      if (context->rank == 1) {
        Message out(context, std::vector<char>(kBytes, 'x'));
        awaitSignal(context, 0);
        together.arrive_and_wait();
        try {
          out.buffer->send(0, 1);
          out.buffer->waitSend();
        } catch (const IoException&) {
        }
        together.arrive_and_wait();
        return;
      }
      Message in(context, std::vector<char>(kBytes, 'c'));
      in.buffer->recv(1, 1);
      signal(context, 1);
      together.arrive_and_wait();
      try {
        in.buffer->waitRecv(milliseconds(limit));
      } catch (const TimeoutException&) {
        timeouts++;
      }
      const std::vector<char> then = in.bytes;
      together.arrive_and_wait();  // the peer has given up, or is done
      EXPECT_TRUE(in.bytes == then) << limit << " ms";
    });
  }
  EXPECT_GT(timeouts, 0);
}

std::string refusal(const transport::ibverbs::attr& attr) {
  try {
    transport::ibverbs::CreateDevice(attr);
  } catch (const InvalidOperationException& e) {
    return e.what();
  }
  return "it was not refused";
}

TEST_F(VerbsDeviceTest, UnknownNamesAndGidsListWhatThereIs) {
  const auto names = transport::ibverbs::getDeviceNames();
  ASSERT_FALSE(names.empty());
  transport::ibverbs::attr attr;
  attr.name = "no_such_device";
  EXPECT_THAT(refusal(attr),
              AllOf(HasSubstr("no_such_device"), HasSubstr(names.front())));
  attr.name = names.front();
  attr.index = 200;
  EXPECT_THAT(refusal(attr),
              AllOf(HasSubstr("index 200"), HasSubstr(names.front())));
}

// Run by faults.sh, with little lockable memory and no right to more.
TEST_F(VerbsDeviceTest, TheLimitOfLockedMemoryIsNamedWithTheRemedy) {
  run([](const ContextPtr& context) {
    meet(context);
    std::string text;
    if (context->rank == 0) {
      try {
        Message in(context, size_t{17} << 20);
        in.buffer->recv(1, 1);
      } catch (const IoException& e) {
        text = e.what();
      }
      EXPECT_THAT(text, AllOf(HasSubstr("Cannot register 17825792 bytes"),
                              HasSubstr("16384 KiB"), HasSubstr("ulimit -l"),
                              HasSubstr("--ulimit memlock=-1")));
    }
    meet(context);
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
