// Two ranks over RDMA devices in memory, and what each of their devices counts.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>

#include "gloo/internal/channel.h"
#include "gloo/internal/statistics.h"
#include "tests/support/spawn.h"
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {

class CountsTest : public testing::Test {
 protected:
  using Statistics = internal::Statistics;
  static constexpr uint64_t kSlot = 7;

  // Counts of a while, and what the peer has counted meanwhile.
  struct Counted {
    Statistics own;
    Statistics peer;
  };

  // One of two ranks. Both are threads, so that they can be in step without a
  // message.
  struct Rank {
    std::shared_ptr<transport::Device> device;
    ContextPtr context;
    std::barrier<>& meeting;
    std::array<Statistics, 2>& noted;

    int number() const { return context->rank; }
    int peer() const { return 1 - context->rank; }
    bool sends() const { return number() == 0; }  // where only one does
    // Both ranks are here, and have taken what the other one has sent.
    void meet() {
      meeting.arrive_and_wait();
      for (int i = 0; i < 4; i++) {
        internal::Channel::of(*context).poll();
      }
      meeting.arrive_and_wait();
    }
    Statistics now() const { return internal::statisticsOf(*device); }
    // What `work` and the peer's cost, until all has been taken. To be called
    // by both.
    Counted count(const std::function<void()>& work) {
      const Statistics before = now();
      meeting.arrive_and_wait();  // or some of the peer's is counted before
      work();
      meet();
      noted[number()] = between(before, now());
      meeting.arrive_and_wait();
      const Counted counted{noted[number()], noted[peer()]};
      meeting.arrive_and_wait();
      return counted;
    }
  };

  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  static Statistics between(const Statistics& before, Statistics after) {
    for (const auto count :
         {&Statistics::framesSent, &Statistics::advertsSent,
          &Statistics::announcesSent, &Statistics::creditsSent,
          &Statistics::allocations, &Statistics::registrations,
          &Statistics::posts, &Statistics::doorbells, &Statistics::signalled,
          &Statistics::completions, &Statistics::receiverNotReady}) {
      after.*count -= before.*count;
    }
    return after;
  }

  // Until the peers' ends are open, what is sent waits.
  static void greet(Rank& rank) {
    Message out(rank.context, 8);
    Message in(rank.context, 8);
    in.buffer->recv(rank.peer(), kSlot);
    out.buffer->send(rank.peer(), kSlot);
    EXPECT_TRUE(out.buffer->waitSend());
    EXPECT_TRUE(in.buffer->waitRecv());
  }

  static void run(const std::function<void(Rank&)>& body,
                  const FakeDevices& devices = plainDevices()) {
    const DeviceMaker maker = fakeVerbsDevices(devices);
    std::barrier meeting(2);
    std::array<Statistics, 2> noted;
    spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
      auto device = maker();
      auto context = device->createContext(seat.rank, seat.size);
      context->setTimeout(contextTimeout());
      context->createAndConnectAllPairs(seat.store);
      Rank rank{std::move(device), context, meeting, noted};
      greet(rank);
      rank.meet();
      body(rank);
      rank.meet();
    });
  }
};

}  // namespace test
GLOO_NAMESPACE_END
