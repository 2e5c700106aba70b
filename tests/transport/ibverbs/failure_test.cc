// What no real device does when it is told to: failing posts, events, late and
// reordered completions. What fails becomes an IoException at all who wait, on
// both ranks, with the reason and not the flush that follows.
#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gloo/rendezvous/prefix_store.h"
#include "tests/support/process_group.h"
#include "tests/transport/ibverbs/harm.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ContainsRegex;
using testing::HasSubstr;

// Nobody knows any more what completes.
TEST_F(VerbsFailureTest, ACompletionQueuesErrorEndsTheDevice) {
  const Texts both =
      texts([](FakeVerbs& fake) { fake.raiseOnCq(firstQp(fake)); }, &wait);
  expectBoth(both, HasSubstr("CQ error"));
}

TEST_F(VerbsFailureTest, ADevicesFatalEventIsNamed) {
  const Texts both =
      texts([](FakeVerbs& fake) { fake.raise(IBV_EVENT_DEVICE_FATAL); }, &wait);
  expectBoth(both, HasSubstr("local catastrophic error"));
}

TEST_F(VerbsFailureTest, APortThatStaysDownIsAnErrorWhenItsTimeIsOver) {
  const auto start = now();
  FakeDevices devices = asynchronousDevices(5);
  devices.attr.portDownTime = milliseconds(300);
  const Texts both = texts(
      [](FakeVerbs& fake) {
        fake.setPort(1, IBV_PORT_DOWN);
        fake.raise(IBV_EVENT_PORT_ERR);
      },
      &wait, devices);
  expectBoth(both, ContainsRegex("port 1 .* has been down for 300 ms"));
  EXPECT_GE(now() - start, milliseconds(300));
  EXPECT_LT(now() - start, seconds(2) * slowness());
}

// Of a device that is kept.
TEST_F(VerbsFailureTest, APortThatStayedDownMakesNoPairsUntilItIsUpAgain) {
  FakeDevices devices = asynchronousDevices(5);
  devices.attr.portDownTime = milliseconds(100);
  const auto maker = fakeVerbsDevices(devices);
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    const auto device = maker();
    const auto connect = [&](const char* name) {
      auto context = device->createContext(seat.rank, 2);
      context->setTimeout(contextTimeout());
      context->createAndConnectAllPairs(
          std::make_shared<rendezvous::PrefixStore>(name, seat.store));
      return context;
    };
    const auto setPort = [&](ibv_port_state state, ibv_event_type event) {
      meetOutside();
      if (seat.rank == 0) {
        fakeVerbs().setPort(1, state);
        fakeVerbs().raise(event);
        while (fakeVerbs().pendingEvents() > 0) {
          std::this_thread::yield();
        }
      }
      meetOutside();
    };
    const auto expectDown = [](const std::function<void()>& call) {
      try {
        call();
        ADD_FAILURE() << "the port is not missed";
      } catch (const IoException& e) {
        EXPECT_THAT(e.what(), ContainsRegex("port 1 of RDMA device fake0 has "
                                            "been down .*cable"));
      }
    };
    const auto first = connect("first");
    setPort(IBV_PORT_DOWN, IBV_EVENT_PORT_ERR);
    expectDown([&] { wait(first); });
    const auto start = now();
    expectDown([&] { connect("second"); });
    EXPECT_LT(now() - start, seconds(2) * slowness());
    setPort(IBV_PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE);
    meet(connect("third"));
    meetOutside();
  });
}

TEST_F(VerbsFailureTest, APortThatComesBackAtOnceIsNoError) {
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  spawn(Mode::kThreads, maker, 2, [](const ContextPtr& context) {
    meet(context);
    if (context->rank == 0) {
      fakeVerbs().setPort(1, IBV_PORT_DOWN);
      fakeVerbs().raise(IBV_EVENT_PORT_ERR);
      signal(context, 1);  // on its way
      fakeVerbs().setPort(1, IBV_PORT_ACTIVE);
      fakeVerbs().raise(IBV_EVENT_PORT_ACTIVE);
    } else {
      awaitSignal(context, 0);
    }
    meet(context);
  });
}

// By the default attributes. A message of each rank is on its way meanwhile.
TEST_F(VerbsFailureTest, APortThatIsDownForASecondIsNoError) {
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  spawn(Mode::kThreads, maker, 2, [this](const ContextPtr& context) {
    const int peer = 1 - context->rank;
    Message in(context, 100000);
    Message out(context, pattern(context->rank, 100000));
    in.buffer->recv(peer, 1);
    meet(context);  // behind the adverts
    meetOutside();
    if (context->rank == 0) {
      fakeVerbs().setPort(1, IBV_PORT_DOWN);
      fakeVerbs().raise(IBV_EVENT_PORT_ERR);
    }
    meetOutside();
    out.buffer->send(peer, 1);
    meetOutside();
    if (context->rank == 0) {
      ::poll(nullptr, 0, 1000);
      fakeVerbs().setPort(1, IBV_PORT_ACTIVE);
      fakeVerbs().raise(IBV_EVENT_PORT_ACTIVE);
    }
    EXPECT_TRUE(in.buffer->waitRecv());
    EXPECT_TRUE(out.buffer->waitSend());
    EXPECT_TRUE(in.holds(peer));
    meet(context);
  });
}

TEST_F(VerbsFailureTest, ASendThatCannotBePostedIsAnErrorOnBothRanks) {
  const Texts both =
      texts([](FakeVerbs& fake) { fake.fail(FakeCall::kPostSend, ENOMEM); },
            &exchangeForEver);
  expectBoth(both, HasSubstr("Cannot allocate memory"));
}

TEST_F(VerbsFailureTest, AReceiveThatCannotBePostedIsAnErrorOnBothRanks) {
  const Texts both =
      texts([](FakeVerbs& fake) { fake.fail(FakeCall::kPostRecv, ENOMEM); },
            &exchangeForEver);
  expectBoth(both, HasSubstr("Cannot allocate memory"));
}

// Who goes on sending has credits for what was posted, and no others: it hears
// the reason, and not that the receiver is not ready.
TEST_F(VerbsFailureTest, ReceivesThatCannotBePostedAnyMoreAreAnErrorByName) {
  FakeDevices devices = asynchronousDevices(5);
  devices.attr.reasonTime = milliseconds(50);
  for (const int posted : {0, 5}) {
    const Texts both = texts(
        [posted](FakeVerbs& fake) {
          fake.fail(FakeCall::kPostRecv, ENOMEM, 1 << 20, posted);
        },
        &exchangeForEver, devices);
    expectBoth(both, HasSubstr("Cannot allocate memory"));
    EXPECT_EQ(mistakesOfFakeVerbs(), "") << posted;
  }
}

// Heads, adverts and credits with wrong bytes, or cut short: refused, and
// nothing outside of what was to be received is touched. (That a lost frame is
// missed only in time is no refusal.)
TEST_F(VerbsFailureTest, AlteredFramesEndInAnErrorOrInWrongPayloadOnly) {
  constexpr int kSeeds = 25;
  constexpr size_t kGuard = 4096;
  std::atomic<int> refused{0};
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    const auto maker = fakeVerbsDevices(asynchronousDevices(5));
    spawn(Mode::kThreads, maker, 2, [&](const ContextPtr& context) {
      meet(context);
      meetOutside();
      context->setTimeout(milliseconds(300));
      fakeVerbs().alterSends(seed, 8);
      std::vector<char> memory(kGuard + 200000 + kGuard);
      size_t end = 0;
      try {
        for (uint64_t size : {10, 500, 3000, 50000, 100, 200000, 1000, 70000}) {
          std::fill(memory.begin(), memory.end(), 'g');
          end = kGuard + size;
          Message out(context, size);
          auto in = context->createUnboundBuffer(memory.data(), memory.size());
          in->recv(1 - context->rank, size, kGuard, size);
          out.buffer->send(1 - context->rank, size);
          in->waitRecv();
          out.buffer->waitSend();
        }
      } catch (const TimeoutException&) {
      } catch (const IoException& e) {
        EXPECT_THAT(e.what(), HasSubstr("rank"));
        refused++;
      }
      const auto isGuard = [](char byte) { return byte == 'g'; };
      EXPECT_TRUE(
          std::all_of(memory.begin(), memory.begin() + kGuard, isGuard) &&
          std::all_of(memory.begin() + static_cast<ptrdiff_t>(end),
                      memory.end(), isGuard));
    });
    fakeVerbs().alterSends(0, 0);
  }
  EXPECT_GT(refused, kSeeds) << "of " << 2 * kSeeds << " ranks";
}

// All queue pairs fail at once, and complete all their requests before anybody
// polls.
TEST_F(VerbsFailureTest, CompletionQueuesHaveRoomForEveryFlush) {
  constexpr int kSize = 8;
  FakeDevices devices = tinyDevices();
  devices.config.maxCqe = 48;  // less than one rank's queue pairs need
  const auto maker = fakeVerbsDevices(devices);
  std::barrier<> together(kSize);
  spawn(Mode::kThreads, maker, kSize, [&](const ContextPtr& context) {
    meet(context);
    Message in(context, 10);
    in.buffer->recv((context->rank + 1) % kSize, 1);
    together.arrive_and_wait();
    if (context->rank == 0) {
      fakeVerbs().holdCompletions();
      for (const uint32_t qpn : fakeVerbs().queuePairs()) {
        fakeVerbs().failReceive(qpn, IBV_WC_FATAL_ERR);
      }
      fakeVerbs().releaseCompletions(7);
    }
    EXPECT_THROW(in.buffer->waitRecv(), IoException);
  });
}

TEST_F(VerbsFailureTest, LateAndReorderedCompletionsLoseNothing) {
  const auto maker = fakeVerbsDevices(asynchronousDevices(5));
  spawn(Mode::kThreads, maker, 3, [](const ContextPtr& context) {
    meet(context);
    for (uint64_t round = 1; round <= 30; round++) {
      std::vector<std::unique_ptr<Message>> messages;
      if (context->rank == 0) {
        fakeVerbs().holdCompletions();
      }
      for (int peer = 0; peer < context->size; peer++) {
        for (size_t size : {10, 3000, 100000}) {
          if (peer == context->rank) {
            continue;
          }
          messages.push_back(std::make_unique<Message>(context, size));
          messages.back()->buffer->recv(peer, size);
          const auto seed = static_cast<uint64_t>(context->rank);
          messages.push_back(
              std::make_unique<Message>(context, pattern(seed, size)));
          messages.back()->buffer->send(peer, size);
        }
      }
      if (context->rank == 0) {
        fakeVerbs().releaseCompletions(round);
      }
      size_t at = 0;
      for (int peer = 0; peer < context->size; peer++) {
        for (int i = 0; i < 3 && peer != context->rank; i++) {
          EXPECT_TRUE(messages[at]->buffer->waitRecv());
          EXPECT_TRUE(messages[at]->holds(static_cast<uint64_t>(peer)));
          EXPECT_TRUE(messages[at + 1]->buffer->waitSend());
          at += 2;
        }
      }
      meet(context);
    }
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
