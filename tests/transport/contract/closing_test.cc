// A thread closes the context while another one still sends: what comes behind
// the farewell is not reported as sent.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

ContextPtr connectPair(const std::shared_ptr<transport::Device>& device,
                       const Seat& seat) {
  auto context = device->createContext(seat.rank, 2);
  context->setTimeout(contextTimeout());
  context->createAndConnectAllPairs(seat.store);
  return context;
}

class ClosingTest : public ContractTest {
 protected:
  using Step = std::function<void()>;

  // One of each call moves one message, or throws.
  struct Way {
    Step send;  // on rank 0
    Step receive;
  };
  using MakeWay = std::function<Way(const ContextPtr&)>;

  void closeWhileSending(const MakeWay& make);
};

// Rank 1 holds still until rank 0 has tried to send, so that the farewell is
// said and not yet over.
void ClosingTest::closeWhileSending(const MakeWay& make) {
  spawnSeats(mode(), 2, [&](Seat& seat) {
    const auto device = maker()();
    const auto context = connectPair(device, seat);
    auto& internals = dynamic_cast<transport::base::Context&>(*context);
    const Way way = make(context);
    seat.rank == 0 ? way.send() : way.receive();
    meet(context);
    if (seat.rank == 1) {
      auto lock = internals.lock();
      seat.store->set("still", {1});
      seat.store->wait({"tried"}, contextTimeout());
      lock.unlock();
      EXPECT_THROW(way.receive(), IoException);
      return;
    }
    seat.store->wait({"still"}, contextTimeout());
    std::thread closer([&] { internals.close(); });
    while (context->getPair(1)->isConnected()) {
      std::this_thread::yield();
    }
    context->setTimeout(std::chrono::milliseconds(100));
    std::string why;
    try {
      way.send();
    } catch (const IoException& e) {
      why = e.what();
    }
    seat.store->set("tried", {1});
    closer.join();
    EXPECT_NE(why.find("rank 0 closed this context"), std::string::npos)
        << (why.empty() ? "reported as sent" : why);
  });
}

// Rank 1 takes nothing, and says nothing, before rank 0 has closed.
TEST_P(ClosingTest, EndsBesideAPeerThatTakesNothing) {
  spawnSeats(mode(), 2, [&](Seat& seat) {
    const auto device = maker()();
    const auto context = connectPair(device, seat);
    meet(context);
    auto& internals = dynamic_cast<transport::base::Context&>(*context);
    if (seat.rank == 1) {
      const auto lock = internals.lock();
      seat.store->set("still", {1});
      seat.store->wait({"closed"}, contextTimeout());
      return;
    }
    seat.store->wait({"still"}, contextTimeout());
    Message message(context, size_t{64} << 20);
    message.buffer->send(1, 5);
    internals.close();
    seat.store->set("closed", {1});
  });
}

TEST_P(ClosingTest, AMessageFails) {
  for (const size_t bytes : {size_t{8}, size_t{3000}, size_t{1} << 20}) {
    closeWhileSending([bytes](const ContextPtr& context) {
      const auto message = std::make_shared<Message>(context, bytes);
      return Way{[message] {
                   message->buffer->send(1, 5);
                   EXPECT_TRUE(message->buffer->waitSend());
                 },
                 [message] {
                   message->buffer->recv(0, 5);
                   EXPECT_TRUE(message->buffer->waitRecv());
                 }};
    });
  }
}

TEST_P(ClosingTest, ABoundWriteFails) {
  closeWhileSending([](const ContextPtr& context) {
    const auto bytes = std::make_shared<std::vector<char>>(8);
    auto& pair = *context->getPair(1 - context->rank);
    const std::shared_ptr<transport::Buffer> buffer =
        context->rank == 0 ? pair.createSendBuffer(3, bytes->data(), 8)
                           : pair.createRecvBuffer(3, bytes->data(), 8);
    return Way{[bytes, buffer] {
                 buffer->send();
                 buffer->waitSend();
               },
               [bytes, buffer] { buffer->waitRecv(); }};
  });
}

// Eager messages, as many as may be on their way: more than a link takes at
// once. Rank 1 takes none before all are sent, and leaves then.
TEST_P(ClosingTest, WhatIsOnItsWayToARankThatLeavesIsSent) {
  spawnSeats(mode(), 2, [&](Seat& seat) {
    const auto device = maker()();
    const auto context = connectPair(device, seat);
    auto& internals = dynamic_cast<transport::base::Context&>(*context);
    meet(context);
    if (seat.rank == 1) {
      const auto lock = internals.lock();
      seat.store->set("still", {1});
      seat.store->wait({"sent"}, contextTimeout());
      return;
    }
    const auto caps = internals.capsOfLinks();
    Message message(context, std::min<size_t>(caps.eagerBytes, 256 << 10));
    const size_t cost = std::max(message.bytes.size(), caps.creditQuantum);
    const size_t messages = std::min<size_t>(caps.creditBytes / cost - 1, 4096);
    seat.store->wait({"still"}, contextTimeout());
    for (size_t i = 0; i < messages; i++) {
      message.buffer->send(1, i);
    }
    seat.store->set("sent", {1});
    for (size_t i = 0; i < messages; i++) {
      EXPECT_TRUE(message.buffer->waitSend());
    }
  });
}

// The peer fails because of that, or is gone, and has nothing more to say.
TEST_P(ClosingTest, AReceiveFromAClosedPairEndsWithThePeer) {
  run(2, [](const ContextPtr& context) {
    Message in(context, 8);
    in.buffer->recv(1 - context->rank, 5);
    meet(context);
    if (context->rank == 0) {
      context->getPair(1)->close();
    }
    std::string why;
    try {
      in.buffer->waitRecv();
    } catch (const IoException& e) {
      why = e.what();
    }
    // (Or the peer's word for it is there first.)
    const bool isOwn =
        context->rank == 0 &&
        why.find("rank 0 closed its pair with rank 1") != std::string::npos;
    EXPECT_TRUE(isOwn || why.find("rank 0 left") != std::string::npos) << why;
  });
}

GLOO_CONTRACT_SUITE(ClosingTest);

class LazyClosingTest : public ContractTest {};

// Rank 0 is held in its farewell by rank 2. Rank 1, which has not used its pair
// with it so far, hears that it leaves; not that it died.
TEST_P(LazyClosingTest, WhoLeavesSaysSoToALatePeer) {
  std::barrier<> together(3);
  std::barrier<> held(2);
  spawn(mode(), maker(), 3, [&](const ContextPtr& context) {
    auto& internals = dynamic_cast<transport::base::Context&>(*context);
    if (context->rank == 1) {
      together.arrive_and_wait();
      Message out(context, 8);
      std::string why;
      try {
        out.buffer->send(0, 1);
        out.buffer->waitSend();
      } catch (const IoException& e) {
        why = e.what();
      }
      EXPECT_NE(why.find("rank 0 left"), std::string::npos) << why;
      together.arrive_and_wait();
      return;
    }
    if (context->rank == 2) {
      signal(context, 0);
      auto lock = internals.lock();
      held.arrive_and_wait();
      together.arrive_and_wait();
      together.arrive_and_wait();
      return;
    }
    awaitSignal(context, 2);
    held.arrive_and_wait();
    std::thread closer([&] { internals.close(); });
    while (context->getPair(2)->isConnected()) {
      std::this_thread::yield();
    }
    together.arrive_and_wait();
    together.arrive_and_wait();
    closer.join();
  });
}

std::vector<ContractCase> lazyThreads() {
  std::vector<ContractCase> cases = contractCases();
  std::erase_if(cases, [](const ContractCase& c) {
    return c.mode != Mode::kThreads ||
           c.transport->name.find("lazy") == std::string::npos;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, LazyClosingTest, ::testing::ValuesIn(lazyThreads()),
                         [](const auto& info) {
                           return info.param.transport->name;
                         });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
