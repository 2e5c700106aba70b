// A rank that cannot make its end of a pair, for reasons of its own: both say
// which, and nobody takes it for dead.
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <functional>
#include <string>

#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::ContainsRegex;
using testing::Each;

class VerbsTroubleTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }
};

// The higher rank calls, and registers the memory of its queue pair first.
TEST_F(VerbsTroubleTest, ACallersOwnTroubleIsWhatBothSay) {
  const auto maker = fakeVerbsDevices(plainDevices());
  maker();
  fakeVerbs().fail(FakeCall::kRegMr, ENOMEM);
  std::array<std::string, 2> texts;
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    const ContextPtr context = maker()->createContext(seat.rank, 2);
    context->setTimeout(contextTimeout());
    try {
      context->createAndConnectAllPairs(seat.store);
    } catch (const IoException& e) {
      texts[static_cast<size_t>(seat.rank)] = e.what();
    }
  });
  EXPECT_THAT(texts, Each(ContainsRegex("rank 1 cannot make a link to rank "
                                        "0: .*Cannot register")));
}

// At first use of a lazy pair: the registration for rank 0's end comes first.
class VerbsLazyTroubleTest : public VerbsTroubleTest {
 protected:
  void expectBothToSay(int goodOnes, const std::string& text) {
    FakeDevices devices = plainDevices();
    devices.lazy = true;
    std::array<internal::CausePtr, 2> causes;
    std::barrier both(2);
    spawn(Mode::kThreads, fakeVerbsDevices(devices), 2,
          [&](const ContextPtr& context) {
            auto& base = dynamic_cast<transport::base::Context&>(*context);
            Message out(context, 8);
            both.arrive_and_wait();
            if (context->rank == 0) {
              fakeVerbs().fail(FakeCall::kRegMr, ENOMEM, 1, goodOnes);
              out.buffer->send(1, 1);
            }
            EXPECT_THROW(
                base.waitUntil([] { return false; },
                               Deadline::after(std::chrono::seconds(20))),
                IoException);
            causes[static_cast<size_t>(context->rank)] = base.failure();
          });
    for (const auto& cause : causes) {
      ASSERT_NE(cause, nullptr);
      EXPECT_EQ(cause->kind, internal::Cause::Kind::kIo);
      EXPECT_THAT(cause->text, ContainsRegex(text));
    }
  }
};

TEST_F(VerbsLazyTroubleTest, OfTheCallerIsNotTakenForADeath) {
  expectBothToSay(0, "rank 0 cannot make a link to rank 1: .*Cannot register");
}

TEST_F(VerbsLazyTroubleTest, OfTheOtherIsNotTakenForADeath) {
  expectBothToSay(1, "rank 1 cannot make a link to rank 0: .*Cannot register");
}

// More peers share the memory of a device.
TEST_F(VerbsTroubleTest, AContextKnowsWhatItsLinksCopyBeforeThereAreAny) {
  FakeDevices devices = plainDevices();
  devices.lazy = true;
  const auto device = fakeVerbsDevices(devices)();
  const auto eagerBytes = [&](int size) {
    const auto context = device->createContext(0, size);
    return dynamic_cast<transport::base::Context&>(*context).eagerBytes();
  };
  EXPECT_EQ(eagerBytes(2), 16384u);
  EXPECT_EQ(eagerBytes(65), 8192u);
}

TEST_F(VerbsTroubleTest, AContextCopiesNoMoreThanAPeerTakes) {
  std::atomic<int> made{0};
  spawn(
      Mode::kThreads,
      [&] {
        FakeDevices devices = plainDevices();
        devices.lazy = true;
        devices.attr.eagerBytes = made++ == 0 ? 1024 : 4096;
        return fakeVerbsDevices(devices)();
      },
      2,
      [](const ContextPtr& context) {
        meet(context);
        auto& base = dynamic_cast<transport::base::Context&>(*context);
        EXPECT_EQ(base.eagerBytes(), 1024u);
      });
}

void getOverFrames(const FakeDevices& devices) {
  std::string key;
  spawn(Mode::kThreads, fakeVerbsDevices(devices), 2,
        [&](const ContextPtr& context) {
          constexpr size_t kSize = 100000;
          Message message(context, context->rank == 1
                                       ? pattern(5, kSize)
                                       : std::vector<char>(kSize));
          if (context->rank == 1) {
            key = message.buffer->getRemoteKey()->serialize();
          }
          meet(context);
          if (context->rank == 0) {
            const auto remote = context->deserializeRemoteKey(key);
            message.buffer->get(*remote, 1, 0, 0, kSize);
            EXPECT_TRUE(message.buffer->waitSend());
            EXPECT_TRUE(message.holds(5));
          }
          meet(context);
        });
}

TEST_F(VerbsTroubleTest, AGetWorksWhereDevicesAllowNoReads) {
  FakeDevices devices = plainDevices();
  devices.config.maxReadsAtATime = 0;
  getOverFrames(devices);
}

TEST_F(VerbsTroubleTest, AGetWorksWhereTheUserAllowsNoReads) {
  FakeDevices devices = plainDevices();
  devices.attr.readsAtATime = 0;
  getOverFrames(devices);
}

// Else peers would put there, and end both contexts.
TEST_F(VerbsTroubleTest, WhatCannotBeRegisteredJustNowIsNotTakenForReadOnly) {
  std::string key;
  spawn(Mode::kThreads, fakeVerbsDevices(plainDevices()), 2,
        [&](const ContextPtr& context) {
          Message message(context, pattern(context->rank, 100000));
          meet(context);
          if (context->rank == 1) {
            fakeVerbs().fail(FakeCall::kRegMr, ENOMEM);
            EXPECT_THROW(message.buffer->getRemoteKey(), IoException);
            key = message.buffer->getRemoteKey()->serialize();
          }
          meet(context);
          if (context->rank == 0) {
            const auto remote = context->deserializeRemoteKey(key);
            message.buffer->put(*remote, 1, 0, 0, 100000);
            EXPECT_TRUE(message.buffer->waitSend());
          }
          meet(context);
          EXPECT_TRUE(message.holds(0));
        });
}

TEST_F(VerbsTroubleTest, MoreThanADeviceRegistersAtATimeIsToBeDivided) {
  FakeDevices devices = plainDevices();
  devices.config.maxRegionBytes = 3 << 20;
  spawn(Mode::kThreads, fakeVerbsDevices(devices), 2,
        [](const ContextPtr& context) {
          Message message(context, (3 << 20) + 1);
          try {
            message.buffer->getRemoteKey();
            ADD_FAILURE() << "registered";
          } catch (const IoException& e) {
            EXPECT_NE(std::string(e.what()).find(
                          "takes 3145728 bytes at a time: divide"),
                      std::string::npos)
                << e.what();
          }
          meet(context);
        });
}

// Of which a frame's head takes a part.
TEST_F(VerbsTroubleTest, AnEagerMessageFitsTheLongestOfTheDevice) {
  FakeDevices devices = plainDevices();
  devices.config.ports[0].maxMessageBytes = 4096;
  spawn(Mode::kThreads, fakeVerbsDevices(devices), 2,
        [](const ContextPtr& context) {
          const int peer = 1 - context->rank;
          for (const size_t size : {3000, 4032, 4033, 4096, 10000, 100000}) {
            Message out(context, pattern(size, size));
            Message in(context, size);
            in.buffer->recv(peer, 1);
            out.buffer->send(peer, 1);
            EXPECT_TRUE(in.buffer->waitRecv());
            EXPECT_TRUE(out.buffer->waitSend());
            EXPECT_TRUE(in.holds(size));
          }
        });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
