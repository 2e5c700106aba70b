// How much work a message is: counts, which no noise changes.
#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "tests/transport/ibverbs/counts.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::Le;

constexpr size_t kLarge = 1 << 20;  // goes straight into advertised memory

class VerbsCountsTest : public CountsTest {
 protected:
  // Sends from rank 0 to rank 1, one after the other.
  struct Sent {
    Statistics sender;
    Statistics receiver;
  };
  static Sent sendSmall(Rank& rank, Message& message, uint64_t sends) {
    const Counted counted = rank.count([&] {
      for (uint64_t i = 0; i < sends; i++) {
        if (rank.sends()) {
          message.buffer->send(1, kSlot);
          EXPECT_TRUE(message.buffer->waitSend());
        } else {
          message.buffer->recv(0, kSlot);
        }
      }
      for (uint64_t i = 0; i < sends && !rank.sends(); i++) {
        EXPECT_TRUE(message.buffer->waitRecv());
      }
    });
    return rank.sends() ? Sent{counted.own, counted.peer}
                        : Sent{counted.peer, counted.own};
  }
  static void expectFewSignals(int sendQueue, uint64_t signalEvery);
};

// One request of `signalEvery` asks for a completion, however long the row is:
// half of the send queue must come back while the rest is in use.
void VerbsCountsTest::expectFewSignals(int sendQueue, uint64_t signalEvery) {
  FakeDevices devices = plainDevices();
  devices.attr.sendQueue = sendQueue;
  run(
      [=](Rank& rank) {
        Message message(rank.context, 8);
        while (sendSmall(rank, message, 1).sender.signalled == 0) {
        }
        uint64_t since = 0;  // the last that was signalled
        for (const uint64_t sends : {1, 7, 8, 48, 64, 1000}) {
          const auto [sender, receiver] = sendSmall(rank, message, sends);
          SCOPED_TRACE(sends);
          EXPECT_EQ(sender.posts, sends);
          EXPECT_EQ(sender.framesSent, sends);
          EXPECT_EQ(sender.signalled, (since + sends) / signalEvery);
          since = (since + sends) % signalEvery;
          // Those, and the messages that return credits, each of whose receives
          // is posted again.
          EXPECT_EQ(sender.completions,
                    sender.signalled + receiver.creditsSent);
          EXPECT_EQ(receiver.posts, receiver.creditsSent);
          EXPECT_EQ(receiver.completions, sends + receiver.signalled);
          EXPECT_THAT(receiver.creditsSent, Le(sends / 32 + 1));
          // What waits for credits leaves with others.
          EXPECT_THAT(sender.doorbells, Le(sends + receiver.creditsSent));
          if (sends <= 8) {
            EXPECT_EQ(sender.doorbells, sends + receiver.creditsSent);
          }
          EXPECT_EQ(sender.registrations + receiver.registrations, 0u);
        }
      },
      devices);
}

TEST_F(VerbsCountsTest, SmallSendsInARowAskForFewCompletions) {
  expectFewSignals(128, 8);  // by default: n / 8
}

TEST_F(VerbsCountsTest, AndWithAShortSendQueue) {
  expectFewSignals(32, 8);
  EXPECT_EQ(mistakesOfFakeVerbs(), "");
  expectFewSignals(16, 4);
}

// Rank 1 takes nothing while rank 0 sends, so it gives no credits back either.
TEST_F(VerbsCountsTest, WhatWaitsForCreditsLeavesSixteenAtATime) {
  run([](Rank& rank) {
    constexpr uint64_t kFirst = 64;  // receives, by default
    constexpr uint64_t kWaiting = 512;
    Message message(rank.context, 8);
    const Counted counted = rank.count([&] {
      if (rank.sends()) {
        rank.meeting.arrive_and_wait();
        for (uint64_t i = 0; i < kFirst + kWaiting; i++) {
          message.buffer->send(1, kSlot);
        }
        rank.meeting.arrive_and_wait();
      } else {
        const auto lock =
            dynamic_cast<transport::base::Context&>(*rank.context).lock();
        rank.meeting.arrive_and_wait();
        rank.meeting.arrive_and_wait();
      }
      for (uint64_t i = 0; i < kFirst + kWaiting; i++) {
        if (rank.sends()) {
          EXPECT_TRUE(message.buffer->waitSend());
        } else {
          message.buffer->recv(0, kSlot);
          EXPECT_TRUE(message.buffer->waitRecv());
        }
      }
    });
    const Statistics& sender = rank.sends() ? counted.own : counted.peer;
    const Statistics& receiver = rank.sends() ? counted.peer : counted.own;
    EXPECT_EQ(sender.posts, kFirst + kWaiting);
    // The receive of each message that returns credits is posted again.
    EXPECT_THAT(receiver.creditsSent, Le((kFirst + kWaiting) / 32));
    EXPECT_EQ(sender.doorbells, kFirst + kWaiting / 16 + receiver.creditsSent);
    EXPECT_EQ(sender.completions, sender.signalled + receiver.creditsSent);
  });
}

TEST_F(VerbsCountsTest, AReceiveThatCameFirstCostsOneAdvertAndOneWrite) {
  run([](Rank& rank) {
    Message message(rank.context, kLarge);
    for (int round = 0; round < 3; round++) {
      const Counted counted = rank.count([&] {
        if (!rank.sends()) {
          message.buffer->recv(0, kSlot);
        }
        rank.meet();
        if (rank.sends()) {
          message.buffer->send(1, kSlot);
          EXPECT_TRUE(message.buffer->waitSend());
        } else {
          EXPECT_TRUE(message.buffer->waitRecv());
        }
      });
      const Statistics& own = counted.own;
      EXPECT_EQ(own.posts, 1u);  // the write; the advert
      EXPECT_EQ(own.doorbells, 1u);
      EXPECT_EQ(own.advertsSent, rank.sends() ? 0u : 1u);
      EXPECT_EQ(own.announcesSent, 0u);
      // The write's memory is free when it is complete; of adverts one of 8
      // asks. And what the peer says completes a receive.
      EXPECT_EQ(own.signalled, rank.sends() ? 1u : 0u);
      EXPECT_EQ(own.completions, own.signalled + 1);
      EXPECT_EQ(own.registrations, round == 0 ? 1u : 0u);
      EXPECT_THAT(own.allocations, Le(round == 0 ? 1u : 0u));
    }
  });
}

TEST_F(VerbsCountsTest, ASendThatCameFirstCostsOneAnnouncementMore) {
  run([](Rank& rank) {
    Message message(rank.context, kLarge);
    for (int round = 0; round < 3; round++) {
      const Counted counted = rank.count([&] {
        if (rank.sends()) {
          message.buffer->send(1, kSlot);
        }
        rank.meet();
        if (rank.sends()) {
          EXPECT_TRUE(message.buffer->waitSend());
        } else {
          message.buffer->recv(0, kSlot);
          EXPECT_TRUE(message.buffer->waitRecv());
        }
      });
      const Statistics& own = counted.own;
      EXPECT_EQ(own.posts, rank.sends() ? 2u : 1u);
      EXPECT_EQ(own.doorbells, rank.sends() ? 2u : 1u);
      EXPECT_EQ(own.announcesSent, rank.sends() ? 1u : 0u);
      EXPECT_EQ(own.advertsSent, rank.sends() ? 0u : 1u);
      EXPECT_EQ(own.signalled, rank.sends() ? 1u : 0u);
      // The write and the advert; the announcement and the write.
      EXPECT_EQ(own.completions, 2u);
      EXPECT_EQ(own.registrations, round == 0 ? 1u : 0u);
    }
  });
}

// One that two requests hold is handed over whole, a longer one takes turns.
TEST_F(VerbsCountsTest, AMessageOfManyRequestsLeavesRoomForOthers) {
  constexpr size_t kPart = 32 << 10;
  FakeDevices devices = asynchronousDevices(5);
  devices.config.ports[0].maxMessageBytes = kPart;
  for (const size_t parts : {2, 3, 40}) {
    run(
        [parts](Rank& rank) {
          const uint64_t announced = parts > 2 ? 1 : 0;
          Message message(rank.context, rank.number() == 0
                                            ? pattern(parts, parts * kPart)
                                            : std::vector<char>(parts * kPart));
          rank.meet();
          const uint64_t heard = rank.now().framesReceived;
          rank.meeting.arrive_and_wait();
          if (rank.number() == 1) {
            message.buffer->recv(0, kSlot);
            rank.meeting.arrive_and_wait();
            EXPECT_TRUE(message.buffer->waitRecv());
            EXPECT_TRUE(message.holds(parts));
            rank.meet();
            return;
          }
          // The advert, which these devices deliver on a thread of their own.
          while (rank.now().framesReceived == heard) {
            internal::Channel::of(*rank.context).poll();
          }
          const Statistics before = rank.now();
          fakeVerbs().pause();
          message.buffer->send(1, kSlot);
          EXPECT_EQ(rank.now().posts - before.posts, 2 + announced);
          fakeVerbs().resume();
          rank.meeting.arrive_and_wait();
          EXPECT_TRUE(message.buffer->waitSend());
          EXPECT_EQ(rank.now().posts - before.posts, parts + announced);
          EXPECT_EQ(rank.now().announcesSent - before.announcesSent, announced);
          rank.meet();
        },
        devices);
  }
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
      // Of sends from the request itself one of 8 asks for a completion; of the
      // others each, since it says when the memory is free.
      uint64_t signalled = 0;
      uint64_t doorbells = 0;
      for (int round = 0; round < 16; round++) {
        const Counted counted = rank.count([&] {
          if (rank.sends()) {
            send->send();
            send->waitSend();
          } else {
            recv->waitRecv();
          }
        });
        const Statistics& own = counted.own;
        // What fits into the request itself needs no registration.
        const uint64_t first =
            round == 0 && rank.sends() && bytes == kLarge ? 1 : 0;
        EXPECT_EQ(own.posts, rank.sends() ? 1u : 0u);
        EXPECT_EQ(own.completions, rank.sends() ? own.signalled : 1u);
        EXPECT_EQ(own.registrations, first);
        EXPECT_EQ(own.advertsSent + own.announcesSent + own.framesSent, 0u);
        EXPECT_EQ(own.allocations, 0u);
        signalled += own.signalled;
        doorbells += own.doorbells;
      }
      EXPECT_EQ(signalled, rank.sends() ? bytes == kLarge ? 16u : 2u : 0u);
      // One each; receives are posted again 16 at a time.
      EXPECT_EQ(doorbells, rank.sends() ? 16u : 1u);
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

// Of the target neither processor nor queue pair has anything to do.
TEST_F(VerbsCountsTest, APutIsOneWriteAndAGetOneRead) {
  std::array<std::string, 2> keys;
  for (const size_t bytes : {size_t{8}, kLarge}) {
    run([&](Rank& rank) {
      Message exported(rank.context, bytes);
      Message local(rank.context, bytes);
      keys[rank.number()] = exported.buffer->getRemoteKey()->serialize();
      rank.meet();
      const auto key = rank.context->deserializeRemoteKey(keys[rank.peer()]);
      for (int round = 0; round < 3; round++) {
        for (const bool puts : {true, false}) {
          const Counted counted = rank.count([&] {
            if (rank.sends()) {
              puts ? local.buffer->put(*key, kSlot, 0, 0, bytes)
                   : local.buffer->get(*key, kSlot, 0, 0, bytes);
              EXPECT_TRUE(local.buffer->waitSend());
            }
          });
          const Statistics& own = counted.own;
          const uint64_t one = rank.sends() ? 1 : 0;
          EXPECT_EQ(own.posts, one);
          EXPECT_EQ(own.doorbells, one);
          EXPECT_EQ(own.signalled, one);
          EXPECT_EQ(own.completions, one);
          EXPECT_EQ(own.framesSent, 0u);
          EXPECT_THAT(own.registrations, Le(round == 0 ? one : 0));
          EXPECT_THAT(own.allocations, Le(round == 0 ? one : 0));
        }
      }
    });
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
