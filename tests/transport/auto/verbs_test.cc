// The automatic device where there are RDMA ports: in memory, all ranks are
// threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>

#include "gloo/context.h"
#include "gloo/internal/channel.h"
#include "gloo/internal/statistics.h"
#include "gloo/rendezvous/context.h"
#include "gloo/transport/auto/device.h"
#include "tests/support/collectives.h"
#include "tests/support/fake_verbs/fake_verbs.h"
#include "tests/transport/contract/contract.h"
#include "transport/ibverbs/api.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

struct Wanted {
  bool shm = false;
  bool rdma = true;
};

std::shared_ptr<transport::Device> makeDevice(const Wanted& wanted) {
  transport::DeviceAttr attr;
  attr.tcp.hostname = "127.0.0.1";
  attr.shm = wanted.shm;
  attr.rdma = wanted.rdma;
  return transport::CreateDevice(attr);
}

// fn on a connected context of each rank, whose device is as wanted.
void connect(const std::vector<Wanted>& ranks, const TransportFunction& fn) {
  spawnSeats(Mode::kThreads, static_cast<int>(ranks.size()), [&](Seat& seat) {
    auto device = makeDevice(ranks[static_cast<size_t>(seat.rank)]);
    auto context = device->createContext(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(seat.store);
    fn(context);
    meet(context);
  });
}

std::string linkTo(transport::Context& context, int peer) {
  return internal::Channel::of(context).linkName(peer);
}

class AutoVerbsTest : public testing::Test {
 protected:
  // Both ranks say that their only link is of this kind.
  static void expectLink(const std::string& kind) {
    connect({{}, {}}, [&](const ContextPtr& context) {
      EXPECT_EQ(linkTo(*context, 1 - context->rank), kind);
    });
  }
  void TearDown() override {
    EXPECT_EQ(verbs_.alive(), "");
    EXPECT_EQ(verbs_.misuse(), std::vector<std::string>());
    EXPECT_EQ(verbs_.counts().receiverNotReady, 0u);
  }

  FakeVerbs verbs_;
};

// Neither the library nor, with it, a device.
TEST(AutoWithoutVerbs, IsMadeAllTheSame) {
  const auto none =
      transport::ibverbs::loadApi("libibverbs-that-is-not-there.so.1");
  transport::ibverbs::replaceApi(&none);
  EXPECT_EQ(makeDevice({})->str().find("ibverbs"), std::string::npos);
  transport::ibverbs::replaceApi(nullptr);
  FakeVerbsConfig empty;
  empty.devices.clear();
  const FakeVerbs verbs(empty);
  EXPECT_EQ(makeDevice({})->str().find("ibverbs"), std::string::npos);
}

// Of ranks 0 to 3, the last one has neither, the one before no shared memory.
const std::vector<Wanted> kMixed = {
    {true, true}, {true, true}, {false, true}, {false, false}};

TEST_F(AutoVerbsTest, EachPairHasTheBestThatBothCanUse) {
  connect(kMixed, [](const ContextPtr& context) {
    const std::vector<std::vector<std::string>> expected = {
        {"", "shm", "ibverbs", "tcp"},
        {"shm", "", "ibverbs", "tcp"},
        {"ibverbs", "ibverbs", "", "tcp"},
        {"tcp", "tcp", "tcp", ""}};
    for (int peer = 0; peer < context->size; peer++) {
      if (peer != context->rank) {
        EXPECT_EQ(linkTo(*context, peer),
                  expected[static_cast<size_t>(context->rank)]
                          [static_cast<size_t>(peer)]);
      }
    }
  });
}

TEST_F(AutoVerbsTest, MessagesOfAllSizesTravelOverAllKindsOfLinks) {
  constexpr std::array<size_t, 5> kSizes = {0, 8, 5000, 40000, 3000001};
  connect(kMixed, [&](const ContextPtr& context) {
    for (const size_t size : kSizes) {
      const auto seed = [](int from, int to) {
        return static_cast<uint64_t>(from * 10 + to);
      };
      std::vector<std::unique_ptr<Message>> in;
      std::vector<std::unique_ptr<Message>> out;
      for (int i = 1; i < context->size; i++) {
        const int peer = (context->rank + i) % context->size;
        out.push_back(std::make_unique<Message>(
            context, pattern(seed(context->rank, peer), size)));
        out.back()->buffer->send(peer, size);
        in.push_back(std::make_unique<Message>(context, size));
        in.back()->buffer->recv(peer, size);
      }
      for (int i = 1; i < context->size; i++) {
        const int peer = (context->rank + i) % context->size;
        EXPECT_TRUE(out[static_cast<size_t>(i) - 1]->buffer->waitSend());
        EXPECT_TRUE(in[static_cast<size_t>(i) - 1]->buffer->waitRecv());
        EXPECT_TRUE(
            in[static_cast<size_t>(i) - 1]->holds(seed(peer, context->rank)));
      }
    }
  });
}

TEST_F(AutoVerbsTest, AReceiveFromAnyWaitsOnAllKindsOfLinks) {
  connect(kMixed, [](const ContextPtr& context) {
    constexpr size_t kBytes = 100000;
    if (context->rank != 0) {
      Message mine(context,
                   pattern(static_cast<uint64_t>(context->rank), kBytes));
      mine.buffer->send(0, 1);
      EXPECT_TRUE(mine.buffer->waitSend());
      return;
    }
    std::vector<int> seen;
    for (int i = 1; i < context->size; i++) {
      Message message(context, kBytes);
      int source = -1;
      message.buffer->recv(std::vector<int>{1, 2, 3}, 1);
      EXPECT_TRUE(message.buffer->waitRecv(&source));
      EXPECT_TRUE(message.holds(static_cast<uint64_t>(source)));
      seen.push_back(source);
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
  });
}

// Each rank in turn gets what the one before it has put.
TEST_F(AutoVerbsTest, OneKeyServesPutsAndGetsOverAllKindsOfLinks) {
  constexpr size_t kBytes = 70000;
  std::promise<std::string> promise;
  const std::shared_future<std::string> text = promise.get_future().share();
  connect(kMixed, [&](const ContextPtr& context) {
    const int rank = context->rank;
    if (rank == 0) {
      Message shared(context, pattern(0, kBytes));
      promise.set_value(shared.buffer->getRemoteKey()->serialize());
      signal(context, 1);
      awaitSignal(context, 3);
      EXPECT_TRUE(shared.holds(3));
      return;
    }
    awaitSignal(context, rank - 1);
    const auto key = context->deserializeRemoteKey(text.get());
    Message got(context, kBytes);
    got.buffer->get(*key, 1, 0, 0, kBytes);
    EXPECT_TRUE(got.buffer->waitSend());
    EXPECT_TRUE(got.holds(static_cast<uint64_t>(rank) - 1));
    Message put(context, pattern(static_cast<uint64_t>(rank), kBytes));
    put.buffer->put(*key, 2, 0, 0, kBytes);
    EXPECT_TRUE(put.buffer->waitSend());
    signal(context, (rank + 1) % context->size);
  });
}

TEST_F(AutoVerbsTest, CollectivesOverAMixedMeshGiveWhatTheOracleSays) {
  using testing_support::Call;
  spawnSeats(Mode::kThreads, 4, [](Seat& seat) {
    auto context = std::make_shared<rendezvous::Context>(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    auto device = makeDevice(kMixed[static_cast<size_t>(seat.rank)]);
    context->connectFullMesh(seat.store, device);
    for (size_t which = 0; which < testing_support::kChecks; which++) {
      for (const size_t count : {1, 3000, 100000}) {
        const Call call{count, 2, false, 0, static_cast<unsigned>(which)};
        EXPECT_EQ("", testing_support::checkCollective<float>(
                          which, std::shared_ptr<Context>(context), call));
      }
    }
  });
}

// Memory is registered for links over RDMA, and for no other.
TEST_F(AutoVerbsTest, LinksThroughSharedMemoryRegisterNothing) {
  spawnSeats(Mode::kThreads, 2, [](Seat& seat) {
    auto device = makeDevice({true, true});
    auto context = device->createContext(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(seat.store);
    meet(context);
    const uint64_t before = internal::statisticsOf(*device).registrations;
    Message message(context, 1 << 20);
    if (context->rank == 0) {
      message.buffer->send(1, 1);
      EXPECT_TRUE(message.buffer->waitSend());
    } else {
      message.buffer->recv(0, 1);
      EXPECT_TRUE(message.buffer->waitRecv());
    }
    const auto key = message.buffer->getRemoteKey();
    EXPECT_EQ(internal::statisticsOf(*device).registrations, before);
    meet(context);
  });
}

TEST_F(AutoVerbsTest, TheDeviceNamesItsPort) {
  EXPECT_NE(makeDevice({})->str().find("auto, ibverbs fake0 port 1 or tcp, lo"),
            std::string::npos);
  EXPECT_EQ(makeDevice({true, false})->str().find("ibverbs"),
            std::string::npos);
}

TEST_F(AutoVerbsTest, APortThatIsDownIsNotUsed) {
  verbs_.setPort(1, IBV_PORT_DOWN);
  EXPECT_EQ(makeDevice({})->str().find("ibverbs"), std::string::npos);
  expectLink("tcp");
}

TEST_F(AutoVerbsTest, ADeviceThatIsNamedMustExist) {
  transport::DeviceAttr attr;
  attr.ibverbs.name = "mlx5_77";
  EXPECT_THROW(transport::CreateDevice(attr), InvalidOperationException);
}

// On either side: the one that calls does not offer it, the one that is called
// does not take it.
TEST_F(AutoVerbsTest, WithoutAQueuePairItIsTcp) {
  for (const int skip : {0, 1}) {
    verbs_.fail(FakeCall::kCreateQp, ENOMEM, 1000, skip);
    expectLink("tcp");
    verbs_.fail(FakeCall::kCreateQp, ENOMEM, 0);
  }
}

// INIT on both sides, then RTR on the side that was called.
TEST_F(AutoVerbsTest, WithoutAWayToThePeersPortItIsTcp) {
  verbs_.fail(FakeCall::kModifyQp, ENETUNREACH, 1000, 2);
  expectLink("tcp");
}

TEST(AutoWithoutVerbsTest, AHostWithoutTheLibraryUsesTheRest) {
  const transport::ibverbs::LoadedApi none{std::nullopt, "it is not there"};
  transport::ibverbs::replaceApi(&none);
  connect({{}, {}}, [](const ContextPtr& context) {
    EXPECT_EQ(linkTo(*context, 1 - context->rank), "tcp");
  });
  transport::ibverbs::replaceApi(nullptr);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
