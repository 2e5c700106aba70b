// How much work a message is: counts, which no noise changes.
#include <gmock/gmock.h>

#include <array>
#include <barrier>
#include <functional>

#include "gloo/allgather.h"
#include "gloo/allreduce.h"
#include "gloo/broadcast.h"
#include "gloo/internal/channel.h"
#include "gloo/internal/statistics.h"
#include "gloo/math.h"
#include "tests/support/spawn.h"
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::Statistics;
using testing::Le;

constexpr size_t kLarge = 1 << 20;  // goes straight into advertised memory
constexpr uint64_t kSlot = 7;

class VerbsCountsTest : public testing::Test {
 protected:
  // One of two ranks. Both are threads, so that they can be in step without a
  // message.
  struct Rank {
    std::shared_ptr<transport::Device> device;
    ContextPtr context;
    std::barrier<>& meeting;

    int number() const { return context->rank; }
    int peer() const { return 1 - context->rank; }
    // Both ranks are here, and have taken what the other one has sent.
    void meet() {
      meeting.arrive_and_wait();
      for (int i = 0; i < 4; i++) {
        internal::Channel::of(*context).poll();
      }
      meeting.arrive_and_wait();
    }
    Statistics now() const { return internal::statisticsOf(*device); }
  };

  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  // Until the peers' ends are open, what is sent waits.
  static void greet(Rank& rank) {
    Message out(rank.context, 8);
    Message in(rank.context, 8);
    in.buffer->recv(rank.peer(), kSlot);
    out.buffer->send(rank.peer(), kSlot);
    EXPECT_TRUE(out.buffer->waitSend());
    EXPECT_TRUE(in.buffer->waitRecv());
  }

  static void run(const std::function<void(Rank&)>& body) {
    const DeviceMaker maker = fakeVerbsDevices(plainDevices());
    std::barrier meeting(2);
    spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
      auto device = maker();
      auto context = device->createContext(seat.rank, seat.size);
      context->setTimeout(contextTimeout());
      context->createAndConnectAllPairs(seat.store);
      Rank rank{std::move(device), context, meeting};
      greet(rank);
      rank.meet();
      body(rank);
      rank.meet();
    });
  }
};

TEST_F(VerbsCountsTest, SmallSendsInARowAskForFewCompletions) {
  run([](Rank& rank) {
    constexpr uint64_t kSends = 48;
    Message message(rank.context, 8);
    const Statistics before = rank.now();
    for (uint64_t i = 0; i < kSends; i++) {
      if (rank.number() == 0) {
        message.buffer->send(1, kSlot);
        EXPECT_TRUE(message.buffer->waitSend());
      } else {
        message.buffer->recv(0, kSlot);
      }
    }
    rank.meet();
    const Statistics after = rank.now();
    if (rank.number() == 0) {
      EXPECT_EQ(after.posts - before.posts, kSends);
      EXPECT_EQ(after.framesSent - before.framesSent, kSends);
      EXPECT_THAT(after.signalled - before.signalled, Le(kSends / 8 + 2));
      // And one of the message that returns credits, whose receive is posted
      // again.
      EXPECT_THAT(after.completions - before.completions, Le(kSends / 8 + 3));
      EXPECT_THAT(after.doorbells - before.doorbells, Le(kSends + 1));
    }
    for (uint64_t i = 0; i < kSends && rank.number() == 1; i++) {
      EXPECT_TRUE(message.buffer->waitRecv());
    }
  });
}

TEST_F(VerbsCountsTest, AReceiveThatCameFirstCostsOneAdvertAndOneWrite) {
  run([](Rank& rank) {
    Message message(rank.context, kLarge);
    for (int round = 0; round < 3; round++) {
      const Statistics before = rank.now();
      if (rank.number() == 1) {
        message.buffer->recv(0, kSlot);
      }
      rank.meet();
      if (rank.number() == 0) {
        message.buffer->send(1, kSlot);
        EXPECT_TRUE(message.buffer->waitSend());
      } else {
        EXPECT_TRUE(message.buffer->waitRecv());
      }
      rank.meet();
      const Statistics after = rank.now();
      const bool sends = rank.number() == 0;
      EXPECT_EQ(after.posts - before.posts, 1u);  // the write; the advert
      EXPECT_EQ(after.doorbells - before.doorbells, 1u);
      EXPECT_EQ(after.advertsSent - before.advertsSent, sends ? 0u : 1u);
      EXPECT_EQ(after.announcesSent, before.announcesSent);
      EXPECT_EQ(after.registrations - before.registrations, round == 0 ? 1 : 0);
    }
  });
}

TEST_F(VerbsCountsTest, ASendThatCameFirstCostsOneAnnouncementMore) {
  run([](Rank& rank) {
    Message message(rank.context, kLarge);
    const Statistics before = rank.now();
    if (rank.number() == 0) {
      message.buffer->send(1, kSlot);
    }
    rank.meet();
    if (rank.number() == 0) {
      EXPECT_TRUE(message.buffer->waitSend());
    } else {
      message.buffer->recv(0, kSlot);
      EXPECT_TRUE(message.buffer->waitRecv());
    }
    rank.meet();
    const Statistics after = rank.now();
    const bool sends = rank.number() == 0;
    EXPECT_EQ(after.posts - before.posts, sends ? 2u : 1u);
    EXPECT_EQ(after.announcesSent - before.announcesSent, sends ? 1u : 0u);
    EXPECT_EQ(after.advertsSent - before.advertsSent, sends ? 0u : 1u);
  });
}

TEST_F(VerbsCountsTest, ASendLooksForItsAdvertBeforeItAnnounces) {
  run([](Rank& rank) {
    Message message(rank.context, kLarge);
    const Statistics before = rank.now();
    for (int round = 0; round < 50; round++) {
      if (rank.number() == 1) {
        message.buffer->recv(0, kSlot);
      }
      rank.meeting.arrive_and_wait();  // nobody has looked yet
      if (rank.number() == 0) {
        message.buffer->send(1, kSlot);
        EXPECT_TRUE(message.buffer->waitSend());
      } else {
        EXPECT_TRUE(message.buffer->waitRecv());
      }
    }
    EXPECT_EQ(rank.now().announcesSent, before.announcesSent);
  });
}

// A run for each size: a buffer that goes takes its advert back, which is a
// post at each end.
TEST_F(VerbsCountsTest, ABoundSendIsOneWriteAndNothingElse) {
  for (const size_t bytes : {size_t{8}, kLarge}) {
    run([bytes](Rank& rank) {
      auto& pair = *rank.context->getPair(rank.peer());
      std::vector<char> memory(bytes);
      auto send =
          pair.createSendBuffer(static_cast<int>(bytes), memory.data(), bytes);
      std::vector<char> place(bytes);
      auto recv =
          pair.createRecvBuffer(static_cast<int>(bytes), place.data(), bytes);
      rank.meet();
      for (int round = 0; round < 3; round++) {
        const Statistics before = rank.now();
        if (rank.number() == 0) {
          send->send();
          send->waitSend();
        } else {
          recv->waitRecv();
        }
        rank.meet();
        const Statistics after = rank.now();
        // What fits into the request itself needs no registration.
        const uint64_t first =
            round == 0 && rank.number() == 0 && bytes == kLarge ? 1 : 0;
        EXPECT_EQ(after.posts - before.posts, rank.number() == 0 ? 1u : 0u);
        EXPECT_EQ(after.registrations - before.registrations, first);
        EXPECT_EQ(after.advertsSent, before.advertsSent);
        EXPECT_EQ(after.allocations, before.allocations);
        rank.meet();
      }
    });
  }
}

TEST_F(VerbsCountsTest, ShortBoundSendsDoNotWaitForEachOther) {
  run([](Rank& rank) {
    constexpr size_t kSends = 16;
    constexpr size_t kBytes = 65536;
    auto& pair = *rank.context->getPair(rank.peer());
    std::vector<char> memory(kSends * kBytes);
    if (rank.number() == 1) {
      auto recv = pair.createRecvBuffer(1, memory.data(), memory.size());
      rank.meet();
      for (size_t i = 0; i < kSends; i++) {
        recv->waitRecv();
      }
      rank.meet();
      return;
    }
    auto send = pair.createSendBuffer(1, memory.data(), memory.size());
    rank.meet();
    const Statistics before = rank.now();
    for (size_t i = 0; i < kSends; i++) {
      send->send(i * kBytes, kBytes, i * kBytes);
    }
    EXPECT_EQ(rank.now().posts - before.posts, kSends);
    for (size_t i = 0; i < kSends; i++) {
      send->waitSend();
    }
    rank.meet();
  });
}

TEST_F(VerbsCountsTest, SteadyStateRegistersAndAllocatesNothing) {
  run([](Rank& rank) {
    Message out(rank.context, kLarge);
    Message in(rank.context, kLarge);
    Statistics before;
    for (int round = 0; round < 12; round++) {
      if (round == 4) {
        before = rank.now();
      }
      for (const size_t bytes : {size_t{8}, size_t{4096}, kLarge}) {
        in.buffer->recv(rank.peer(), kSlot, 0, bytes);
        out.buffer->send(rank.peer(), kSlot, 0, bytes);
        EXPECT_TRUE(out.buffer->waitSend());
        EXPECT_TRUE(in.buffer->waitRecv());
        rank.meet();
      }
    }
    const Statistics after = rank.now();
    EXPECT_EQ(after.registrations, before.registrations);
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.receiverNotReady, 0u);
  });
}

TEST_F(VerbsCountsTest, ACollectiveRegistersAVectorNotEachOfItsMessages) {
  spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
                [](const std::shared_ptr<Context>& context) {
                  std::vector<float> data(kLarge, 1);
                  AllreduceOptions options(context);
                  options.setOutput(data.data(), data.size());
                  void (*add)(void*, const void*, const void*, size_t) =
                      &sum<float>;
                  options.setReduceFunction(add);
                  allreduce(options);  // makes scratch memory
                  const auto& device = *context->getDevice();
                  const auto before = internal::statisticsOf(device);
                  allreduce(options);
                  const auto after = internal::statisticsOf(device);
                  EXPECT_GT(after.directSent - before.directSent, 4u);
                  // To be sent and to be written by the peer.
                  EXPECT_EQ(after.registrations - before.registrations, 1u);
                  EXPECT_THAT(data, testing::Each(4.0f));
                });
}

// The caller's buffers, whichever part of them a message is of.
TEST_F(VerbsCountsTest, ACollectiveRegistersKeptBuffersOnce) {
  const auto body = [](const std::shared_ptr<Context>& context) {
    const auto size = static_cast<size_t>(context->size);
    std::vector<float> data(kLarge * size, 1);
    std::vector<float> all(kLarge * size);
    const std::shared_ptr<transport::UnboundBuffer> in =
        context->createUnboundBuffer(data.data(), kLarge * sizeof(float));
    const std::shared_ptr<transport::UnboundBuffer> out =
        context->createUnboundBuffer(all.data(), all.size() * sizeof(float));
    const auto run = [&] {
      AllreduceOptions sums(context);
      sums.setOutput<float>(in);
      void (*add)(void*, const void*, const void*, size_t) = &sum<float>;
      sums.setReduceFunction(add);
      allreduce(sums);
      AllgatherOptions gather(context);
      gather.setInput<float>(in);
      gather.setOutput<float>(out);
      allgather(gather);
      BroadcastOptions spread(context);
      spread.setOutput<float>(out);
      spread.setRoot(1);
      broadcast(spread);
    };
    run();  // also makes scratch memory
    const auto& device = *context->getDevice();
    const auto before = internal::statisticsOf(device);
    run();
    run();
    const auto after = internal::statisticsOf(device);
    EXPECT_GT(after.directSent - before.directSent, 4u);
    EXPECT_EQ(after.registrations - before.registrations, 0u);
    const auto sum = static_cast<float>(size * size * size);
    EXPECT_THAT(all, testing::Each(sum));
  };
  for (const int size : {2, 3}) {
    spawnContexts(Mode::kThreads, fakeVerbsDevices(plainDevices()), size, body);
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
