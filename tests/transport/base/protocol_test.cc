// The protocol's own rules, on each shape of link.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>

#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_ring.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/context.h"
#include "gloo/internal/statistics.h"
#include "tests/support/fake_link.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/device.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using transport::base::FrameHeader;
using transport::base::FrameType;

class ProtocolTest : public ::testing::TestWithParam<FakeShape> {
 protected:
  FakeOptions options(uint64_t seed = 1) const {
    FakeOptions options;
    options.shape = GetParam();
    options.seed = seed;
    return options;
  }
};

// Random traffic in both directions; throws what the context throws.
void traffic(const ContextPtr& context, uint64_t seed, int messages) {
  const int peer = 1 - context->rank;
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<Message>> out;
  std::vector<std::unique_ptr<Message>> in;
  for (int i = 0; i < messages; i++) {
    const size_t size = random() % 3 == 0 ? random() % 40000 : random() % 200;
    const uint64_t slot = random() % 4;
    out.push_back(std::make_unique<Message>(
        context, pattern(i * 2 + context->rank, size)));
    in.push_back(std::make_unique<Message>(context, size));
    const bool sendFirst = (random() % 2 == 0) == (context->rank == 0);
    if (sendFirst) {
      out.back()->buffer->send(peer, slot);
    }
    in.back()->buffer->recv(peer, slot);
    if (!sendFirst) {
      out.back()->buffer->send(peer, slot);
    }
    if (random() % 4 == 0) {
      EXPECT_TRUE(in.back()->buffer->waitRecv());
      EXPECT_TRUE(in.back()->holds(i * 2 + peer));
      in.back() = nullptr;
    }
  }
  for (int i = 0; i < messages; i++) {
    if (in[i] != nullptr) {
      EXPECT_TRUE(in[i]->buffer->waitRecv());
      EXPECT_TRUE(in[i]->holds(i * 2 + peer));
    }
    EXPECT_TRUE(out[i]->buffer->waitSend());
  }
}

TEST_P(ProtocolTest, RandomTrafficForManySeeds) {
  for (uint64_t seed = 1; seed <= 25; seed++) {
    SCOPED_TRACE(seed);
    const FakeOptions options = this->options(seed);
    spawn(Mode::kThreads, fakeDevices(options), 2,
          [&](const ContextPtr& context) { traffic(context, seed, 60); });
    EXPECT_EQ(options.watch->broken(), 0u);
    EXPECT_EQ(options.watch->creditsExceeded, 0u);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(ProtocolTest, CreditsAreNeverExceeded) {
  FakeOptions options = this->options();
  options.creditBytes = 2000;
  spawn(Mode::kThreads, fakeDevices(options), 2, [](const ContextPtr& context) {
    if (context->rank == 0) {
      std::vector<char> bytes(100);
      auto buffer = context->createUnboundBuffer(bytes.data(), bytes.size());
      for (uint64_t slot = 0; slot < 500; slot++) {
        buffer->send(1, slot);
      }
      for (int i = 0; i < 500; i++) {
        EXPECT_TRUE(buffer->waitSend());
      }
    } else {
      std::vector<char> bytes(100);
      auto buffer = context->createUnboundBuffer(bytes.data(), bytes.size());
      for (uint64_t slot = 500; slot > 0; slot--) {
        buffer->recv(0, slot - 1);
        EXPECT_TRUE(buffer->waitRecv());
      }
    }
    meet(context);
  });
  EXPECT_EQ(options.watch->creditsExceeded, 0u);
  EXPECT_EQ(options.watch->broken(), 0u);
}

// Unexpected messages take no more memory than was granted for them.
TEST_P(ProtocolTest, UnexpectedMessagesTakeBoundedMemory) {
  const FakeOptions options = this->options();
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    auto device = fakeDevices(options)();
    auto context = device->createContext(seat.rank, 2);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(seat.store);
    std::vector<char> bytes(options.eagerBytes);
    auto buffer = context->createUnboundBuffer(bytes.data(), bytes.size());
    constexpr int kMessages = 1000;
    if (seat.rank == 0) {
      for (uint64_t slot = 0; slot < kMessages; slot++) {
        buffer->send(1, slot);
      }
      signal(context, 1);
      for (int i = 0; i < kMessages; i++) {
        EXPECT_TRUE(buffer->waitSend());
      }
    } else {
      awaitSignal(context, 0);
      const auto statistics = internal::statisticsOf(*device);
      // All but what the credits allow was announced.
      EXPECT_LE(statistics.unexpected, 2u * kMessages);
      EXPECT_LE(statistics.bytesReceived, options.creditBytes);
      for (uint64_t slot = kMessages; slot > 0; slot--) {
        buffer->recv(0, slot - 1);
        EXPECT_TRUE(buffer->waitRecv());
      }
    }
    meet(context);
  });
  EXPECT_EQ(options.watch->broken(), 0u);
}

// A long message whose receive came first moves without a copy.
TEST_P(ProtocolTest, AnExpectedLongMessageIsNotCopied) {
  const FakeOptions options = this->options();
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    auto device = fakeDevices(options)();
    auto context = device->createContext(seat.rank, 2);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(seat.store);
    constexpr size_t kSize = 100000;
    const auto before = internal::statisticsOf(*device);
    if (seat.rank == 1) {
      Message in(context, kSize);
      in.buffer->recv(0, 1);
      signal(context, 0);
      EXPECT_TRUE(in.buffer->waitRecv());
      EXPECT_TRUE(in.holds(6));
    } else {
      awaitSignal(context, 1);
      Message out(context, pattern(6, kSize));
      out.buffer->send(1, 1);
      EXPECT_TRUE(out.buffer->waitSend());
    }
    meet(context);
    const auto after = internal::statisticsOf(*device);
    EXPECT_LT(after.bytesCopied - before.bytesCopied, kSize / 10);
  });
}

// A buffer's memory is registered when a message first needs it, and then
// stays so: once to send from it, once to receive.
TEST_P(ProtocolTest, ABufferIsRegisteredOnceForManyMessages) {
  constexpr size_t kSize = 100000;
  const FakeOptions options = this->options();
  spawnContexts(
      Mode::kThreads, fakeDevices(options), 2,
      [](const std::shared_ptr<::gloo::Context>& context) {
        const int peer = 1 - context->rank;
        std::vector<char> out = pattern(context->rank, kSize);
        std::vector<char> in(kSize);
        auto sent = context->createUnboundBuffer(out.data(), kSize);
        auto received = context->createUnboundBuffer(in.data(), kSize);
        for (size_t turn = 0; turn < 20; turn++) {
          const size_t offset = turn * 1000;
          in.assign(kSize, 0);
          received->recv(peer, 1, offset, kSize - offset);
          sent->send(peer, 1, offset);
          EXPECT_TRUE(received->waitRecv());
          EXPECT_TRUE(sent->waitSend());
          const std::vector<char> expected = pattern(peer, kSize);
          EXPECT_TRUE(std::equal(expected.begin() + offset, expected.end(),
                                 in.begin() + offset));
        }
        EXPECT_LE(internal::statisticsOf(*context->getDevice()).registrations,
                  2u);
      });
}

TEST_P(ProtocolTest, CollectivesThatAreObjectsRegisterNothingWhenTheyRun) {
  constexpr int kCount = 60000;
  const FakeOptions options = this->options();
  const bool registers = needsRegions(GetParam());
  spawnContexts(
      Mode::kThreads, fakeDevices(options), 3,
      [registers](const std::shared_ptr<::gloo::Context>& context) {
        std::vector<float> data(kCount);
        AllreduceRing<float> ring(context, {data.data()}, kCount);
        AllreduceHalvingDoubling<float> halving(context, {data.data()}, kCount);
        BroadcastOneToAll<float> broadcast(context, {data.data()}, kCount);
        const auto run = [&] {
          data.assign(kCount, 1.0f);
          ring.run();
          halving.run();
          broadcast.run();
          EXPECT_EQ(std::vector<float>(kCount, 9.0f), data);
        };
        run();  // registers
        const auto registrations = [&] {
          return internal::statisticsOf(*context->getDevice()).registrations;
        };
        const auto before = registrations();
        for (int turn = 0; turn < 10; turn++) {
          run();
        }
        EXPECT_EQ(before, registrations());
        EXPECT_EQ(registers, before > 0);
      });
}

// Wherever the link breaks, both ranks throw, naming each other.
TEST_P(ProtocolTest, ALostLinkIsAnErrorOnBothSides) {
  for (uint64_t frame = 1; frame <= 120; frame += 7) {
    SCOPED_TRACE(frame);
    const FakeOptions options = this->options(frame);
    spawn(Mode::kThreads, fakeDevices(options), 2,
          [&](const ContextPtr& context) {
            try {
              meet(context);
              if (context->rank == 0) {
                options.watch->loseAtFrame = options.watch->frames + frame;
              }
              traffic(context, frame, 100);
              ADD_FAILURE() << "no error on rank " << context->rank;
            } catch (const IoException& e) {
              const std::string text = e.what();
              EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
              EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
            }
          });
    ASSERT_FALSE(HasFailure());
  }
}

// A rank that has failed closes what was just being connected: whoever sees
// that hears from the others why, and names no other rank. Who is slow to hear
// (the machine stood still) has another round.
TEST_P(ProtocolTest, AConnectionClosedBeforeItsFirstWordWaitsForTheNews) {
  constexpr int kRounds = 20;
  bool heard = false;
  for (int round = 0; round < kRounds && !heard; round++) {
    const FakeOptions options = this->options();
    options.watch->loseAtFrame = 1;
    std::atomic<int> named{0};
    spawn(Mode::kThreads, fakeDevices(options), 3,
          [&](const ContextPtr& context) {
            if (context->rank == 2) {  // leaves, to the others' harm
              while (options.watch->frames == 0) {
                std::this_thread::yield();
              }
              return;
            }
            Message out(context, 8);
            Message in(context, 8);
            if (context->rank == 0) {  // the first word, and it is lost
              out.buffer->send(1, 0);
            }
            try {
              in.buffer->recv(context->rank == 0 ? 1 : 2, 1);
              in.buffer->waitRecv(std::chrono::seconds(20));
              ADD_FAILURE() << "no error on rank " << context->rank;
            } catch (const IoException& e) {
              const std::string text = e.what();
              named += text.find("rank 2 left") != std::string::npos ? 1 : 0;
            }
          });
    heard = named == 2;
  }
  EXPECT_TRUE(heard);
}

// And names who closed it when there is none.
TEST_P(ProtocolTest, AConnectionClosedBeforeItsFirstWordIsAnError) {
  const FakeOptions options = this->options();
  options.watch->loseAtFrame = 1;
  spawn(Mode::kThreads, fakeDevices(options), 2,
        [&](const ContextPtr& context) {
          const int peer = 1 - context->rank;
          try {
            Message out(context, 8);
            Message in(context, 8);
            out.buffer->send(peer, 0);
            in.buffer->recv(peer, 1);  // what one end sent may yet arrive
            in.buffer->waitRecv(std::chrono::seconds(20));
            ADD_FAILURE() << "no error on rank " << context->rank;
          } catch (const IoException& e) {
            const std::string text = e.what();
            EXPECT_NE(text.find(MakeString("rank ", peer)), std::string::npos)
                << text;
            EXPECT_EQ(text.find("Timed out"), std::string::npos) << text;
          }
        });
}

// What a peer sends is data from outside: it may fail the context, and nothing
// else (a sanitizer watches).
void runWithAlteredFrame(const FakeOptions& options, uint64_t frame) {
  SCOPED_TRACE(frame);
  options.watch->alter = [frame](FrameHeader& header) {
    std::mt19937_64 random(frame);
    std::vector<char> bytes(FrameHeader::kBytes);
    encode(header, bytes.data());
    for (int i = 0; i < 3; i++) {
      bytes[8 + random() % 56] = static_cast<char>(random());
    }
    bytes[1] = static_cast<char>(bytes[1] ^ (1 << (random() % 8)));
    try {
      header = transport::base::decodeFrame(bytes);
    } catch (const transport::base::WireError&) {
      header.number += 1;  // the link itself would refuse it
    }
  };
  spawn(Mode::kThreads, fakeDevices(options), 2,
        [&](const ContextPtr& context) {
          context->setTimeout(std::chrono::milliseconds(300));
          try {
            meet(context);
            if (context->rank == 0) {
              options.watch->alterAtFrame = options.watch->frames + frame;
            }
            for (uint64_t i = 0; i < 40; i++) {
              const size_t size = i % 3 == 0 ? 20000 : 100;
              Message out(context, size);
              Message in(context, size);
              out.buffer->send(1 - context->rank, i % 5);
              in.buffer->recv(1 - context->rank, i % 5);
              in.buffer->waitRecv();
              out.buffer->waitSend();
            }
          } catch (const IoException&) {
          }
        });
}

// Together: each of them mostly waits for its deadline.
TEST_P(ProtocolTest, AlteredFramesDoNoHarm) {
  std::vector<std::thread> runs;
  for (uint64_t frame = 1; frame <= 200; frame += 16) {
    runs.emplace_back(runWithAlteredFrame, this->options(frame), frame);
  }
  for (std::thread& run : runs) {
    run.join();
  }
}

// The sender gave up on it when it closed.
TEST_P(ProtocolTest, WhatWasOnlyAnnouncedEndsWithItsSender) {
  const auto body = [](const ContextPtr& context) {
    Message message(context, size_t{100000});
    if (context->rank == 1) {
      message.buffer->send(0, 1);
      context->getPair(0)->close();
      return;
    }
    while (context->getPair(1)->isConnected()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::string text;
    try {
      message.buffer->recv(1, 1);
      message.buffer->waitRecv(std::chrono::seconds(5));
    } catch (const IoException& e) {
      text = e.what();
    }
    EXPECT_NE(text.find("left"), std::string::npos) << text;
  };
  spawn(Mode::kThreads, fakeDevices(this->options()), 2, body);
}

INSTANTIATE_TEST_SUITE_P(, ProtocolTest,
                         ::testing::Values(FakeShape::kStream, FakeShape::kPush,
                                           FakeShape::kPull, FakeShape::kMixed),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
