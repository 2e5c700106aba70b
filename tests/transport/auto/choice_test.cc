#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "gloo/common/logging.h"
#include "gloo/common/string.h"
#include "gloo/internal/channel.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/transport/auto/device.h"
#include "gloo/transport/shm/device.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/spawn.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

std::shared_ptr<transport::Device> makeDevice(bool shm) {
  transport::DeviceAttr attr;
  attr.tcp.hostname = "127.0.0.1";
  attr.shm = shm;
  return transport::CreateDevice(attr);
}

std::string linkTo(transport::Context& context, int peer) {
  return dynamic_cast<internal::Channel&>(context).linkName(peer);
}

std::shared_ptr<transport::Context> connectOver(
    const std::shared_ptr<transport::Device>& device, const Seat& seat,
    const std::string& name) {
  auto context = device->createContext(seat.rank, seat.size);
  context->setTimeout(contextTimeout());
  context->createAndConnectAllPairs(
      std::make_shared<rendezvous::PrefixStore>(name, seat.store));
  return context;
}

#if GLOO_HAVE_TRANSPORT_IBVERBS
// Also on a host without any.
TEST(ChoiceTest, AnRdmaDeviceThatIsNamedMustExist) {
  transport::DeviceAttr attr;
  attr.tcp.hostname = "127.0.0.1";
  attr.ibverbs.name = "mlx5_77";
  try {
    transport::CreateDevice(attr);
    ADD_FAILURE() << "was made";
  } catch (const InvalidOperationException& e) {
    EXPECT_NE(std::string(e.what()).find("mlx5_77"), std::string::npos)
        << e.what();
  }
}
#endif

TEST(ChoiceTest, RanksOfOneHostShareMemory) {
  for (const Mode mode : {Mode::kThreads, Mode::kProcesses}) {
    spawn(
        mode, [] { return makeDevice(true); }, 3,
        [](const std::shared_ptr<transport::Context>& context) {
          EXPECT_EQ(linkTo(*context, (context->rank + 1) % 3), "shm");
        });
  }
}

// One device of three has no shared memory: its pairs are over TCP, those of
// the others are not.
TEST(ChoiceTest, APairWithoutSharedMemoryUsesTcp) {
  std::atomic<int> made{0};
  std::atomic<int> overTcp{0};
  std::atomic<int> overShm{0};
  spawn(
      Mode::kThreads, [&] { return makeDevice(made++ != 0); }, 3,
      [&](const std::shared_ptr<transport::Context>& context) {
        for (int peer = 0; peer < 3; peer++) {
          if (peer != context->rank) {
            const std::string link = linkTo(*context, peer);
            overTcp += link == "tcp";
            overShm += link == "shm";
          }
        }
      });
  EXPECT_EQ(overTcp, 4);
  EXPECT_EQ(overShm, 2);
}

// What ranks of processes or threads log meanwhile.
template <typename Body>
std::string logOf(const Body& body) {
  const LogLevel before = logLevel();
  setLogLevel(LogLevel::INFO);
  testing::internal::CaptureStderr();
  body();
  setLogLevel(before);
  return testing::internal::GetCapturedStderr();
}

void expectLine(const std::string& log, int rank, int peer,
                const std::string& what) {
  const std::string line =
      MakeString("rank ", rank, ": rank ", peer, " ", what);
  EXPECT_NE(std::string::npos, log.find(line)) << line << "\nnot in:\n" << log;
}

TEST(ChoiceTest, TheChoiceForEachPeerIsLogged) {
  for (const Mode mode : {Mode::kThreads, Mode::kProcesses}) {
    const std::string log = logOf([&] {
      spawnSeats(mode, 3, [](const Seat& seat) {
        const auto device = makeDevice(seat.rank != 2);
        connectOver(device, seat, "log");
      });
    });
    for (int rank = 0; rank < 3; rank++) {
      for (int peer = 0; peer < 3; peer++) {
        if (peer != rank) {
          expectLine(
              log, rank, peer,
              rank == 2 || peer == 2 ? "over tcp " : "over shm process ");
        }
      }
    }
  }
}

// By the rank that was called.
TEST(ChoiceTest, WhyAnotherLinkWasNotChosenIsLogged) {
  const std::string log = logOf([&] {
    spawnSeats(Mode::kProcesses, 2, [](const Seat& seat) {
      ::setenv("GLOO_HOST_ID", std::to_string(seat.rank).c_str(), 1);
      connectOver(makeDevice(true), seat, "log");
    });
  });
  const std::string why = " not over shm: ";
  const size_t at = log.find(why);
  ASSERT_NE(std::string::npos, at) << log;
  EXPECT_NE(std::string::npos, log.find("GLOO_HOST_ID", at)) << log;
  expectLine(log, 0, 1, "over tcp ");
  expectLine(log, 1, 0, "over tcp ");
}

TEST(ChoiceTest, TheDeviceSaysWhatItMayUse) {
  EXPECT_NE(makeDevice(true)->str().find("auto, shm or "), std::string::npos);
  EXPECT_NE(makeDevice(true)->str().find("tcp, lo"), std::string::npos);
  EXPECT_EQ(makeDevice(false)->str().find("shm"), std::string::npos);
}

std::string peersOf(const transport::Device& device) {
  const std::string text = device.str();
  const size_t at = text.find(", peers: ");
  return at == std::string::npos ? "" : text.substr(at + 9);
}

// Also while another thread asks for it.
TEST(ChoiceTest, TheDeviceSaysWhatItUsesForHowManyPeers) {
  spawnSeats(Mode::kThreads, 3, [](const Seat& seat) {
    const auto device = makeDevice(seat.rank != 2);
    EXPECT_EQ("", peersOf(*device));
    std::atomic<bool> over{false};
    std::thread reader([&] {
      while (!over) {
        device->str();
        std::this_thread::yield();
      }
    });
    auto one = connectOver(device, seat, "one");
    EXPECT_EQ(seat.rank == 2 ? "2 over tcp" : "1 over shm, 1 over tcp",
              peersOf(*device));
    auto two = connectOver(device, seat, "two");
    EXPECT_EQ(seat.rank == 2 ? "4 over tcp" : "2 over shm, 2 over tcp",
              peersOf(*device));
    over = true;
    reader.join();
    one.reset();
    EXPECT_EQ(seat.rank == 2 ? "2 over tcp" : "1 over shm, 1 over tcp",
              peersOf(*device));
    two.reset();
    EXPECT_EQ("", peersOf(*device));
  });
}

TEST(ChoiceTest, DevicesOfOneKindSayHowManyPeersTheyHave) {
  spawnSeats(Mode::kThreads, 2, [](const Seat& seat) {
    const auto device = makeDevice(false);
    const auto context = connectOver(device, seat, "tcp");
    EXPECT_EQ("1 over tcp", peersOf(*device));
    const auto shm = transport::shm::CreateDevice();
    const auto other = connectOver(shm, seat, "shm");
    EXPECT_EQ("1 over shm", peersOf(*shm));
  });
}

std::shared_ptr<transport::Device> makeTcp(bool shm) {
  transport::tcp::attr attr("127.0.0.1");
  attr.shm = shm;
  return transport::tcp::CreateDevice(attr);
}

TEST(ChoiceTest, ATcpDeviceSharesMemoryOnOneHost) {
  EXPECT_NE(makeTcp(true)->str().find("tcp, lo, shared memory on this host"),
            std::string::npos);
  for (const Mode mode : {Mode::kThreads, Mode::kProcesses}) {
    spawn(
        mode, [] { return makeTcp(true); }, 2,
        [](const std::shared_ptr<transport::Context>& context) {
          EXPECT_EQ(linkTo(*context, 1 - context->rank), "shm");
        });
  }
}

// With one that uses sockets only, too.
TEST(ChoiceTest, ATcpDeviceWithoutSharedMemoryUsesSockets) {
  EXPECT_EQ(makeTcp(false)->str().find("shared memory"), std::string::npos);
  std::atomic<int> made{0};
  spawn(
      Mode::kThreads, [&] { return makeTcp(made++ != 0); }, 2,
      [](const std::shared_ptr<transport::Context>& context) {
        EXPECT_EQ(linkTo(*context, 1 - context->rank), "tcp");
      });
}

TEST(ChoiceTest, TheEnvironmentSwitchesSharedMemoryOff) {
  ::setenv("GLOO_TCP_SHM", "0", 1);
  ::setenv("GLOO_AUTO_LINKS", "tcp", 1);
  EXPECT_EQ(makeTcp(true)->str().find("shared memory"), std::string::npos);
  EXPECT_NE(makeDevice(true)->str().find("auto, tcp, lo"), std::string::npos);
  ::unsetenv("GLOO_TCP_SHM");
  ::unsetenv("GLOO_AUTO_LINKS");
}

TEST(ChoiceTest, ALazyPairSharesMemoryFromItsFirstUse) {
  for (const bool tcp : {false, true}) {
    spawn(
        Mode::kThreads,
        [&] {
          transport::DeviceAttr attr;
          attr.tcp.hostname = "127.0.0.1";
          return tcp ? transport::tcp::CreateLazyDevice(attr.tcp)
                     : transport::CreateLazyDevice(attr);
        },
        3,
        [](const std::shared_ptr<transport::Context>& context) {
          const int next = (context->rank + 1) % 3;
          char out = 'x';
          char in = 0;
          auto buffer = context->createUnboundBuffer(&in, 1);
          auto sent = context->createUnboundBuffer(&out, 1);
          buffer->recv((context->rank + 2) % 3, 1);
          sent->send(next, 1);
          EXPECT_TRUE(sent->waitSend());
          EXPECT_TRUE(buffer->waitRecv());
          EXPECT_EQ(in, 'x');
          EXPECT_EQ(linkTo(*context, next), "shm");
        });
  }
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
