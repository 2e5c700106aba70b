// Devices, contexts and how they are connected.
#include <thread>

#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/prefix_store.h"
#include "tests/transport/contract/contract.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

class ConnectingTest : public ContractTest {
 protected:
  void runContexts(int size, const ContextFunction& fn) const {
    spawnContexts(mode(), maker(), size, fn);
  }
};

void exchange(const ContextPtr& context) {
  for (int peer = 0; peer < context->size; peer++) {
    if (peer == context->rank) {
      continue;
    }
    Message out(context, pattern(context->rank, 1000));
    Message in(context, 1000);
    out.buffer->send(peer, 1);
    in.buffer->recv(peer, 1);
    EXPECT_TRUE(in.buffer->waitRecv());
    EXPECT_TRUE(out.buffer->waitSend());
    EXPECT_TRUE(in.holds(peer));
  }
}

TEST_P(ConnectingTest, EverySizeUpToEight) {
  for (int size = 1; size <= 8; size++) {
    run(size, [&](const ContextPtr& context) {
      EXPECT_EQ(context->size, size);
      exchange(context);
    });
  }
}

// Callers take "use count 3" for "nobody else has it": theirs and the two
// contexts'.
TEST_P(ConnectingTest, OnlyTheContextsHoldTheDevice) {
  spawnSeats(mode(), 2, [&](Seat& seat) {
    auto device = maker()();
    {
      auto context = std::make_shared<rendezvous::Context>(seat.rank, 2);
      context->connectFullMesh(seat.store, device);
      EXPECT_EQ(device.use_count(), 3);
      {
        std::vector<char> bytes(10);
        auto buffer = context->createUnboundBuffer(bytes.data(), 10);
        auto& pair = context->getPair(1 - seat.rank);
        auto bound = pair->createRecvBuffer(0, bytes.data(), 10);
        EXPECT_EQ(device.use_count(), 3);
      }
      EXPECT_EQ(context.use_count(), 1);
    }
    EXPECT_EQ(device.use_count(), 1);
  });
}

TEST_P(ConnectingTest, PairsDescribeThemselves) {
  run(2, [](const ContextPtr& context) {
    EXPECT_EQ(context->getPair(context->rank), nullptr);
    auto& pair = context->getPair(1 - context->rank);
    ASSERT_NE(pair, nullptr);
    exchange(context);  // lazy pairs connect
    EXPECT_TRUE(pair->isConnected());
    EXPECT_FALSE(pair->address().str().empty());
    EXPECT_LE(pair->address().bytes().size(), transport::Address::kMaxByteSize);
    pair->setLocalRank(5);
    EXPECT_EQ(pair->getLocalRank(), 5);
    meet(context);
  });
}

TEST_P(ConnectingTest, PairsConnectByHand) {
  spawnSeats(mode(), 3, [&](Seat& seat) {
    auto context = maker()()->createContext(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    const auto key = [](int from, int to) {
      return "address " + std::to_string(from) + " " + std::to_string(to);
    };
    for (int peer = 0; peer < seat.size; peer++) {
      if (peer != seat.rank) {
        auto& pair = context->createPair(peer);
        seat.store->set(key(seat.rank, peer), pair->address().bytes());
      }
    }
    for (int peer = 0; peer < seat.size; peer++) {
      if (peer != seat.rank) {
        seat.store->wait({key(peer, seat.rank)}, contextTimeout());
        context->getPair(peer)->connect(seat.store->get(key(peer, seat.rank)));
      }
    }
    exchange(context);
    meet(context);
  });
}

TEST_P(ConnectingTest, ConnectRefusesGarbage) {
  spawnSeats(mode(), 1, [&](Seat& seat) {
    auto context = maker()()->createContext(seat.rank, 2);
    context->setTimeout(std::chrono::milliseconds(500));
    auto& pair = context->createPair(1);
    auto bytes = pair->address().bytes();
    for (const auto& bad :
         {std::vector<char>{}, std::vector<char>(100, 'x'),
          std::vector<char>(bytes.begin(), bytes.end() - 1)}) {
      EXPECT_THROW(pair->connect(bad), Exception);
    }
  });
}

TEST_P(ConnectingTest, ADeviceServesSeveralContexts) {
  spawnSeats(mode(), 2, [&](Seat& seat) {
    auto device = maker()();
    std::vector<ContextPtr> contexts;
    for (int i = 0; i < 3; i++) {
      contexts.push_back(device->createContext(seat.rank, 2));
      contexts.back()->setTimeout(contextTimeout());
      contexts.back()->createAndConnectAllPairs(
          std::make_shared<rendezvous::PrefixStore>(std::to_string(i),
                                                    seat.store));
    }
    std::vector<std::thread> threads;
    for (const ContextPtr& context : contexts) {
      threads.emplace_back([&context] {
        for (int i = 0; i < 20; i++) {
          exchange(context);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
}

TEST_P(ConnectingTest, BusyPollingWorks) {
  run(2, [](const ContextPtr& context) {
    context->getPair(1 - context->rank)->setSync(true, true);
    exchange(context);
    context->getPair(1 - context->rank)->setSync(false, false);
    exchange(context);
  });
}

TEST_P(ConnectingTest, CloseConnectionsLeavesInOrder) {
  runContexts(3, [](const std::shared_ptr<Context>& context) {
    std::vector<char> bytes(100);
    auto buffer = context->createUnboundBuffer(bytes.data(), bytes.size());
    for (int peer = 0; peer < 3; peer++) {
      if (peer != context->rank) {
        buffer->send(peer, 1);
        buffer->recv(peer, 1);
      }
    }
    for (int i = 0; i < 2; i++) {
      EXPECT_TRUE(buffer->waitRecv());
      EXPECT_TRUE(buffer->waitSend());
    }
    context->closeConnections();
    context->closeConnections();
    EXPECT_THROW(
        {
          buffer->send((context->rank + 1) % 3, 2);
          buffer->waitSend();
        },
        Exception);
  });
}

TEST_P(ConnectingTest, ASecondMeshOverTheFirst) {
  runContexts(3, [&](const std::shared_ptr<Context>& context) {
    rendezvous::ContextFactory factory(context);
    for (int i = 0; i < 3; i++) {
      auto device = maker()();
      auto second = factory.makeContext(device);
      EXPECT_EQ(second->rank, context->rank);
      EXPECT_EQ(second->size, 3);
      std::vector<char> bytes(10, 'x');
      auto buffer = second->createUnboundBuffer(bytes.data(), bytes.size());
      buffer->send((second->rank + 1) % 3, 1);
      buffer->recv((second->rank + 2) % 3, 1);
      EXPECT_TRUE(buffer->waitSend());
      EXPECT_TRUE(buffer->waitRecv());
    }
  });
}

// Both contexts of a rank may number their memory alike.
TEST_P(ConnectingTest, AKeyOfAnotherContextIsRefused) {
  runContexts(2, [&](const std::shared_ptr<Context>& context) {
    auto device = maker()();
    const auto second = rendezvous::ContextFactory(context).makeContext(device);
    const int peer = 1 - context->rank;
    std::vector<char> bytes(100, 'x');
    auto of1 = context->createUnboundBuffer(bytes.data(), bytes.size());
    auto of2 = second->createUnboundBuffer(bytes.data(), bytes.size());
    std::string key = of1->getRemoteKey()->serialize();
    (void)of2->getRemoteKey();
    key.resize(200, ' ');  // keys differ in length
    auto mine = context->createUnboundBuffer(key.data(), key.size());
    std::string theirs(key.size(), '\0');
    auto in = context->createUnboundBuffer(theirs.data(), theirs.size());
    in->recv(peer, 1);
    mine->send(peer, 1);
    EXPECT_TRUE(mine->waitSend());
    EXPECT_TRUE(in->waitRecv());
    theirs.erase(theirs.find_last_not_of(' ') + 1);

    std::vector<char> source(100, 'y');
    auto out = second->createUnboundBuffer(source.data(), source.size());
    const auto wrong = second->deserializeRemoteKey(theirs);
    EXPECT_THROW(out->put(*wrong, 2, 0, 0, 100), EnforceNotMet);
    EXPECT_THROW(out->get(*wrong, 2, 0, 0, 100), EnforceNotMet);
    // And both contexts go on.
    for (const auto& one : {context, second}) {
      auto buffer = one->createUnboundBuffer(source.data(), source.size());
      buffer->send(peer, 3);
      buffer->recv(peer, 3);
      EXPECT_TRUE(buffer->waitSend());
      EXPECT_TRUE(buffer->waitRecv());
    }
    EXPECT_EQ(bytes, std::vector<char>(100, 'x'));
  });
}

GLOO_CONTRACT_SUITE(ConnectingTest);

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
