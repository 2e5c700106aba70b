// Meshes whose pairs are connected at their first use, and what comes between.
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gloo/internal/mesh.h"
#include "tests/transport/contract/contract.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using internal::Mesh;
using std::chrono::milliseconds;

// What it throws.
template <typename What>
std::string complaint(const What& what) {
  try {
    what();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

ContextPtr connectedAt(const Seat& seat,
                       const std::shared_ptr<transport::Device>& device) {
  auto context = device->createContext(seat.rank, seat.size);
  context->setTimeout(contextTimeout());
  context->createAndConnectAllPairs(seat.store);
  return context;
}

transport::base::Context& internalsOf(const ContextPtr& context) {
  return dynamic_cast<transport::base::Context&>(*context);
}

class OtherMeshTest : public ContractTest {};

// Rank 1 of another mesh has found the address of rank 0 of this one, takes it
// for that of its own, and gives up.
TEST_P(OtherMeshTest, WhatCannotBeLeavesACompleteOneAlone) {
  run(2, [&](const ContextPtr& context) {
    meet(context);
    if (context->rank == 0) {
      const auto stranger = maker()()->createContext(1, 2);
      Mesh& mesh = Mesh::of(*stranger);
      mesh.addPeer(Mesh::of(*context).address());
      while (mesh.peerState(0) == Mesh::PeerState::kConnecting) {
        mesh.progress(milliseconds(10));
      }
      EXPECT_EQ(mesh.peerState(0), Mesh::PeerState::kRefused);
      mesh.refuse("there is no such mesh");
    }
    meet(context);
  });
}

// Who comes late is told why there is none.
TEST_P(OtherMeshTest, WhatCannotBeIsNoMeshToJoin) {
  spawnSeats(mode(), 1, [&](Seat&) {
    const auto given = maker()()->createContext(0, 2);
    const auto late = maker()()->createContext(1, 2);
    Mesh& mesh = Mesh::of(*late);
    EXPECT_TRUE(mesh.isAlive(Mesh::of(*given).address(), milliseconds(10000)));
    Mesh::of(*given).refuse("there is no such mesh");
    EXPECT_TRUE(mesh.isAlive(Mesh::of(*given).address(), milliseconds(10000)));
    mesh.addPeer(Mesh::of(*given).address());
    const std::string why = complaint([&] {
      while (mesh.peerState(0) == Mesh::PeerState::kConnecting) {
        mesh.progress(milliseconds(10));
      }
      mesh.progress(milliseconds(10));
    });
    EXPECT_NE(why.find("there is no such mesh"), std::string::npos) << why;
  });
}

// The answer to a question that was asked at an older address is not waited
// for.
TEST_P(OtherMeshTest, ANewerAddressCounts) {
  spawnSeats(mode(), 1, [&](Seat&) {
    const auto older = maker()()->createContext(0, 2);
    const auto newer = maker()()->createContext(0, 2);
    const auto context = maker()()->createContext(1, 2);
    Mesh& mesh = Mesh::of(*context);
    const auto address = Mesh::of(*older).address();
    {
      const auto lock = internalsOf(older).lock();
      mesh.addPeer(address);
      mesh.addPeer(Mesh::of(*newer).address());
    }
    while (mesh.peerNonce(0) == 0) {
      mesh.progress(milliseconds(10));
    }
    EXPECT_EQ(mesh.peerNonce(0), Mesh::of(*newer).address().nonce);
  });
}

// It is alive all the same, and says so.
TEST_P(OtherMeshTest, ACompleteMeshIsAlive) {
  run(2, [&](const ContextPtr& context) {
    if (context->rank == 0) {
      const auto stranger = maker()()->createContext(1, 2);
      EXPECT_TRUE(Mesh::of(*stranger).isAlive(Mesh::of(*context).address(),
                                              milliseconds(10000)));
    }
    meet(context);
  });
}

GLOO_CONTRACT_SUITE(OtherMeshTest);

// This rank knows that the peer has left, or has failed.
void awaitGone(const ContextPtr& context, int peer) {
  const auto& pair =
      dynamic_cast<const transport::base::Pair&>(*context->getPair(peer));
  const Deadline deadline = Deadline::after(contextTimeout());
  const auto isGone = [&] {
    const auto lock = internalsOf(context).lock();
    return pair.departed() || internalsOf(context).failedLocked();
  };
  while (!isGone() && !deadline.expired()) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(isGone());
}

void expectLeft(const ContextPtr& context, int peer) {
  Message out(context, 8);
  const std::string why = complaint([&] {
    out.buffer->send(peer, 1);
    out.buffer->waitSend();
  });
  EXPECT_NE(why.find("rank " + std::to_string(peer) + " left"),
            std::string::npos)
      << why;
}

class LazyTest : public ContractTest {
 protected:
  using Close = std::function<void(const ContextPtr&)>;

  // Rank 0 has left; `late` finds that out.
  void callWhoHasLeft(int size, int late, bool keepsDevice);
  void closeWhileCalling(const Close& close);
};

// Until all have joined.
void awaitAll(const Seat& seat, int size) {
  seat.store->set(std::to_string(seat.rank), {1});
  for (int rank = 0; rank < size; rank++) {
    seat.store->wait({std::to_string(rank)}, contextTimeout());
  }
}

void LazyTest::callWhoHasLeft(int size, int late, bool keepsDevice) {
  spawnSeats(mode(), size, [&](Seat& seat) {
    auto device = maker()();
    ContextPtr context = connectedAt(seat, device);
    awaitAll(seat, size);
    if (seat.rank == 0) {
      context.reset();
      if (!keepsDevice) {
        device.reset();
      }
      seat.store->set("left", {1});
    } else if (seat.rank == late) {
      seat.store->wait({"left"}, contextTimeout());
      expectLeft(context, 0);
      seat.store->set("done", {1});
    }
    seat.store->wait({"done"}, contextTimeout());
  });
}

// Rank 0 calls rank 1, which is held up meanwhile, gives up what it wanted, and
// closes: rank 1 hears of a farewell, and goes on.
void LazyTest::closeWhileCalling(const Close& close) {
  spawnSeats(mode(), 3, [&](Seat& seat) {
    const auto device = maker()();
    const ContextPtr context = connectedAt(seat, device);
    if (seat.rank == 0) {
      seat.store->wait({"held"}, contextTimeout());
      Message(context, 8).buffer->recv(1, 1);
      auto closing = std::async(std::launch::async, [&] { close(context); });
      closing.wait_for(milliseconds(300));  // or it waits for rank 1
      seat.store->set("closing", {1});
      closing.get();
    } else if (seat.rank == 1) {
      auto lock = internalsOf(context).lock();
      seat.store->set("held", {1});
      seat.store->wait({"closing"}, contextTimeout());
      lock.unlock();
      awaitGone(context, 0);
      signal(context, 2);
      awaitSignal(context, 2);
      expectLeft(context, 0);
      seat.store->set("done", {1});
    } else {
      awaitSignal(context, 1);
      signal(context, 1);
    }
    seat.store->wait({"done"}, contextTimeout());
  });
}

TEST_P(LazyTest, WhoHasLeftIsNotTakenForDead) {
  callWhoHasLeft(3, 1, true);
  callWhoHasLeft(3, 1, false);
}

// Between ranks 0 and 3 of 8 there is no lifeline.
TEST_P(LazyTest, NorIfNothingIsHeardFromIt) {
  callWhoHasLeft(8, 3, true);
  callWhoHasLeft(8, 3, false);
}

TEST_P(LazyTest, WhoHasLeftIsMissedByNobodyElse) {
  spawnSeats(mode(), 3, [&](Seat& seat) {
    const auto device = maker()();
    ContextPtr context = connectedAt(seat, device);
    awaitAll(seat, 3);
    if (seat.rank == 0) {
      context.reset();
      seat.store->set("left", {1});
    } else if (seat.rank == 1) {
      seat.store->wait({"left"}, contextTimeout());
      Message in(context, 8);
      in.buffer->recv(std::vector<int>{0, 2}, 1);
      awaitGone(context, 0);
      seat.store->set("waits", {1});
      int source = -1;
      EXPECT_TRUE(in.buffer->waitRecv(&source));
      EXPECT_EQ(source, 2);
    } else {
      seat.store->wait({"waits"}, contextTimeout());
      Message out(context, 8);
      out.buffer->send(1, 1);
      EXPECT_TRUE(out.buffer->waitSend());
    }
  });
}

TEST_P(LazyTest, AContextThatClosesWhileItCallsSaysSo) {
  closeWhileCalling(
      [](const ContextPtr& context) { internalsOf(context).close(); });
}

TEST_P(LazyTest, APairThatClosesWhileItCallsSaysSo) {
  closeWhileCalling(
      [](const ContextPtr& context) { context->getPair(1)->close(); });
}

TEST_P(LazyTest, APairThatWasClosedIsNotConnected) {
  spawnSeats(mode(), 2, [&](Seat& seat) {
    const auto device = maker()();
    const ContextPtr context = connectedAt(seat, device);
    if (seat.rank == 0) {
      context->getPair(1)->close();
      seat.store->set("closed", {1});
      seat.store->wait({"done"}, contextTimeout());
      EXPECT_FALSE(context->getPair(1)->isConnected());
    } else {
      seat.store->wait({"closed"}, contextTimeout());
      Message in(context, 8);
      const std::string why = complaint([&] {
        in.buffer->recv(0, 1);
        in.buffer->waitRecv();
      });
      EXPECT_NE(why.find("rank 0 left"), std::string::npos) << why;
      seat.store->set("done", {1});
    }
  });
}

// The receiver calls as well, and hears that the sender is about to leave.
TEST_P(LazyTest, WhatWasSentBeforeAContextClosedArrives) {
  for (const int sender : {0, 1}) {
    spawnSeats(mode(), 2, [&](Seat& seat) {
      const auto device = maker()();
      const ContextPtr context = connectedAt(seat, device);
      Message message(context, pattern(seat.rank == sender ? 7 : 0, 8));
      if (seat.rank == sender) {
        seat.store->wait({"held"}, contextTimeout());
        message.buffer->send(1 - sender, 1);
        auto closing = std::async(std::launch::async,
                                  [&] { internalsOf(context).close(); });
        closing.wait_for(milliseconds(100));  // until it waits for rank 1
        seat.store->set("closing", {1});
        closing.get();
      } else {
        auto lock = internalsOf(context).lock();
        seat.store->set("held", {1});
        seat.store->wait({"closing"}, contextTimeout());
        lock.unlock();
        message.buffer->recv(sender, 1);
        EXPECT_TRUE(message.buffer->waitRecv());
        EXPECT_TRUE(message.holds(7));
      }
    });
  }
}

TEST_P(LazyTest, WhoWaitsForAPairThatIsClosedIsTold) {
  spawnSeats(mode(), 2, [&](Seat& seat) {
    const auto device = maker()();
    const ContextPtr context = connectedAt(seat, device);
    if (seat.rank == 1) {
      const auto lock = internalsOf(context).lock();
      seat.store->set("held", {1});
      seat.store->wait({"done"}, contextTimeout());
      return;
    }
    seat.store->wait({"held"}, contextTimeout());
    Message in(context, 8);
    in.buffer->recv(1, 1);
    context->getPair(1)->close();
    const std::string why = complaint([&] { in.buffer->waitRecv(); });
    EXPECT_NE(why.find("rank 0 closed its pair with rank 1"), std::string::npos)
        << why;
    seat.store->set("done", {1});
  });
}

// What the store has of the first one is no address of the second's.
TEST_P(LazyTest, ASecondMeshOnTheSameStoreIsAnother) {
  spawnSeats(mode(), 3, [&](Seat& seat) {
    const auto device = maker()();
    const ContextPtr first = connectedAt(seat, device);
    const ContextPtr second = connectedAt(seat, device);
    const ContextPtr third = connectedAt(seat, maker()());
    for (const ContextPtr& context : {second, first, third}) {
      meet(context);
    }
  });
}

std::vector<ContractCase> lazyCases() {
  std::vector<ContractCase> cases = contractCases();
  std::erase_if(cases, [](const ContractCase& c) {
    return c.transport->name.find("lazy") == std::string::npos;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, LazyTest, ::testing::ValuesIn(lazyCases()),
                         [](const auto& info) {
                           return info.param.transport->name + "_" +
                                  name(info.param.mode);
                         });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
