// What is missing or used up: one clear error with the remedy, or less speed;
// and nothing is left behind.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/prefix_store.h"
#include "tests/support/process_group.h"
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// Of this process, until the end of the scope.
class SoftLimit {
 public:
  SoftLimit(__rlimit_resource_t resource, rlim_t value) : resource_(resource) {
    getrlimit(resource_, &before_);
    rlimit now = before_;
    now.rlim_cur = value;
    EXPECT_EQ(setrlimit(resource_, &now), 0);
  }
  ~SoftLimit() { setrlimit(resource_, &before_); }

 private:
  const __rlimit_resource_t resource_;
  rlimit before_{};
};

class VerbsLimitsTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  // The FakeVerbs exists from here on.
  void start(const FakeDevices& devices = plainDevices()) {
    maker_ = fakeVerbsDevices(devices);
    maker_();
  }

  // What making a device throws.
  template <typename Error>
  std::string refusal() {
    try {
      maker_();
    } catch (const Error& e) {
      return e.what();
    }
    return "no such exception";
  }

  // What the ranks throw while they connect, or, those that are connected, at
  // their first use of the others; one text after the other.
  std::string connecting(int size = 2) {
    std::mutex mutex;
    std::string all;
    spawnSeats(Mode::kThreads, size, [&](Seat& seat) {
      try {
        auto context = std::make_shared<rendezvous::Context>(seat.rank, size);
        context->setTimeout(std::chrono::seconds(5));
        auto device = maker_();
        context->connectFullMesh(seat.store, device);
        wait(*context);
        ADD_FAILURE() << "rank " << seat.rank << " noticed nothing";
      } catch (const IoException& e) {
        std::lock_guard<std::mutex> lock(mutex);
        all += std::string(e.what()) + "\n";
      }
    });
    return all;
  }

  static void wait(rendezvous::Context& context) {
    std::vector<int> others;
    for (int rank = 0; rank < context.size; rank++) {
      if (rank != context.rank) {
        others.push_back(rank);
      }
    }
    auto in = context.createUnboundBuffer(nullptr, 0);
    in->recv(others, 1);
    in->waitRecv();
  }

  // All ranks can still reach each other.
  void works(int size) {
    spawn(Mode::kThreads, maker_, size, [](const ContextPtr& context) {
      for (int i = 0; i < 10; i++) {
        meet(context);
      }
    });
  }

  DeviceMaker maker_;
};

TEST_F(VerbsLimitsTest, ADeviceThatMayNotBeOpened) {
  start();
  fakeVerbs().fail(FakeCall::kOpenDevice, EACCES, 9);
  EXPECT_THAT(refusal<IoException>(), AllOf(HasSubstr("Permission denied"),
                                            HasSubstr("/dev/infiniband")));
}

TEST_F(VerbsLimitsTest, AnUnknownDeviceIsTheCallersMistake) {
  FakeDevices devices = plainDevices();
  start(devices);
  devices.attr.name = "mlx5_7";
  maker_ = fakeVerbsDevices(devices);
  EXPECT_THAT(refusal<InvalidOperationException>(),
              AllOf(HasSubstr("mlx5_7"), HasSubstr("fake0")));
}

TEST_F(VerbsLimitsTest, AWrongGidIndexListsTheGids) {
  FakeDevices devices = plainDevices();
  start(devices);
  devices.attr.index = 77;
  maker_ = fakeVerbsDevices(devices);
  EXPECT_THAT(refusal<InvalidOperationException>(),
              AllOf(HasSubstr("index 77"), HasSubstr("RoCE v2")));
}

// The kernel's own link-local one, or one of another network namespace: peers
// greet elsewhere.
TEST_F(VerbsLimitsTest, AGidThatIsNoAddressOfThisProcess) {
  for (const char* address : {"fe80::1", "2001:db8::1", "::ffff:192.0.2.1"}) {
    FakeDevices devices = plainDevices();
    devices.config.ports[0].addresses = {address};
    devices.attr.hostname.clear();
    start(devices);
    works(2);
    EXPECT_EQ(mistakesOfFakeVerbs(), "");
  }
}

TEST_F(VerbsLimitsTest, APortThatIsDown) {
  start();
  fakeVerbs().setPort(1, IBV_PORT_DOWN);
  EXPECT_THAT(refusal<IoException>(),
              AllOf(HasSubstr("PORT_DOWN"), HasSubstr("ip link set dev")));
}

TEST_F(VerbsLimitsTest, NoProtectionDomainOrCompletionChannel) {
  start();
  fakeVerbs().fail(FakeCall::kAllocPd, ENOMEM);
  EXPECT_THAT(
      refusal<IoException>(),
      AllOf(HasSubstr("protection domain"), HasSubstr("fake0"),
            HasSubstr("Cannot allocate memory"), HasSubstr("ulimit -l")));
  fakeVerbs().fail(FakeCall::kCreateCompChannel, EMFILE);
  EXPECT_THAT(refusal<IoException>(), AllOf(HasSubstr("completion channel"),
                                            HasSubstr("Too many open files")));
}

TEST_F(VerbsLimitsTest, NoCompletionQueue) {
  start();
  fakeVerbs().fail(FakeCall::kCreateCq, ENOMEM, 9);
  EXPECT_THAT(connecting(), AllOf(HasSubstr("no completion queue"),
                                  HasSubstr("lower sendQueue and receives")));
}

// Drivers lock the memory of their queues.
TEST_F(VerbsLimitsTest, NoCompletionQueueNamesTheLimitOfLockedMemory) {
  start();
  const SoftLimit limit(RLIMIT_MEMLOCK, 64 << 10);
  fakeVerbs().fail(FakeCall::kCreateCq, ENOMEM, 9);
  EXPECT_THAT(connecting(), AllOf(HasSubstr("no completion queue"),
                                  HasSubstr("64 KiB"), HasSubstr("ulimit -l")));
}

TEST_F(VerbsLimitsTest, NoQueuePair) {
  start();
  fakeVerbs().fail(FakeCall::kCreateQp, ENOMEM, 99);
  EXPECT_THAT(connecting(),
              AllOf(HasSubstr("no queue pair"), HasSubstr("ulimit -l")));
}

TEST_F(VerbsLimitsTest, FewerQueuePairsThanPeers) {
  FakeDevices devices = plainDevices();
  devices.config.maxQp = 2 * 3 - 1;
  start(devices);
  EXPECT_THAT(connecting(3), HasSubstr("no queue pair"));
}

TEST_F(VerbsLimitsTest, AQueuePairThatDoesNotConnect) {
  start();
  fakeVerbs().fail(FakeCall::kModifyQp, ETIMEDOUT, 1, 2);
  EXPECT_THAT(connecting(),
              AllOf(HasSubstr("queue pair"), HasSubstr("timed out")));
}

// The other one has its link already: INIT of both queue pairs, RTR and RTS of
// the one that was called, come first.
TEST_F(VerbsLimitsTest, ACallersQueuePairThatDoesNotConnectIsNamedByBoth) {
  for (const int step : {4, 5}) {
    start();
    fakeVerbs().fail(FakeCall::kModifyQp, ENETUNREACH, 1, step);
    EXPECT_THAT(connecting(),
                ContainsRegex("cannot make a link.*Network is unreachable.*\n"
                              ".*cannot make a link.*Network is unreachable"));
  }
}

// As on RoCE where the address of a peer is not resolved: one attempt tells.
TEST_F(VerbsLimitsTest, PeersThatAreNotFoundHoldTheirCallersUpOnce) {
  constexpr milliseconds kSearch{400};
  start();
  fakeVerbs().losePeers(kSearch);
  const auto before = now();
  EXPECT_THAT(connecting(8), HasSubstr("Connection timed out"));
  EXPECT_LT(now() - before, 3 * kSearch * slowness());
}

TEST_F(VerbsLimitsTest, LockedMemoryForBuffersOfThePair) {
  start();
  fakeVerbs().fail(FakeCall::kRegMr, ENOMEM, 9);
  EXPECT_THAT(connecting(),
              AllOf(HasSubstr("Cannot register"), HasSubstr("bytes")));
}

TEST_F(VerbsLimitsTest, MemoryThatCannotBeKeptFromChildrenNamesTheRemedy) {
  start();
  fakeVerbs().fail(FakeCall::kRegMr, EINVAL, 9);
  EXPECT_THAT(connecting(), AllOf(HasSubstr("Invalid argument"),
                                  HasSubstr("RDMAV_HUGEPAGES_SAFE=1")));
}

TEST_F(VerbsLimitsTest, LockedMemoryForAMessageNamesTheLimitAndKeepsThePair) {
  start();
  const SoftLimit limit(RLIMIT_MEMLOCK, 64 << 10);
  spawn(Mode::kThreads, maker_, 2, [](const ContextPtr& context) {
    meet(context);
    if (context->rank == 0) {
      fakeVerbs().fail(FakeCall::kRegMr, EPERM);
      std::string text;
      try {
        Message in(context, size_t{8} << 20);
        in.buffer->recv(1, 1);
        in.buffer->waitRecv(std::chrono::milliseconds(1000));
      } catch (const TimeoutException& e) {
        text = std::string("not refused: ") + e.what();
      } catch (const IoException& e) {
        text = e.what();
      }
      EXPECT_THAT(text, AllOf(HasSubstr("Cannot register 8388608 bytes"),
                              HasSubstr("Operation not permitted"),
                              HasSubstr("64 KiB"), HasSubstr("ulimit -l")));
    }
    meet(context);
  });
}

// A message without credit is announced, and needs registered memory when its
// receive is there: whatever thread hears of that lives on.
TEST_F(VerbsLimitsTest, LockedMemoryForAMessageThatIsServedLater) {
  start();
  spawn(Mode::kThreads, maker_, 2, [](const ContextPtr& context) {
    constexpr size_t kBytes = 16000;
    constexpr int kMessages = 600;  // more than there are credits for
    std::vector<char> memory(kBytes);
    auto buffer = context->createUnboundBuffer(memory.data(), kBytes);
    meet(context);
    std::string text;
    try {
      if (context->rank == 0) {
        for (int i = 0; i < kMessages; i++) {
          buffer->send(1, 1);
        }
        fakeVerbs().fail(FakeCall::kRegMr, EPERM, 1000, 1);
        signal(context, 1);
        while (context->getPair(1)->isConnected()) {  // moves nothing itself
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        for (int i = 0; i < kMessages; i++) {
          buffer->waitSend();
        }
      } else {
        awaitSignal(context, 0);
        for (int i = 0; i < kMessages; i++) {
          buffer->recv(0, 1);
        }
        for (int i = 0; i < kMessages; i++) {
          buffer->waitRecv();
        }
      }
    } catch (const IoException& e) {
      text = e.what();
    }
    EXPECT_THAT(text, AllOf(HasSubstr("Cannot register 16000 bytes"),
                            HasSubstr("Operation not permitted")));
  });
}

TEST_F(VerbsLimitsTest, AQueueThatCannotGrowGetsANeighbour) {
  FakeDevices devices = plainDevices();
  devices.attr.receives = 512;
  start(devices);
  fakeVerbs().fail(FakeCall::kResizeCq, ENOSYS, 999);
  works(5);
}

// Whose queue sleepers have armed before.
TEST_F(VerbsLimitsTest, AQueueThatHasGrownWakesItsSleepers) {
  FakeDevices devices = plainDevices();
  devices.attr.receives = 512;
  start(devices);
  std::barrier<> together(2);
  const auto before = now();
  spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
    const auto device = maker_();
    std::vector<ContextPtr> contexts;
    for (const char* name : {"a", "b", "c"}) {
      contexts.push_back(device->createContext(seat.rank, seat.size));
      contexts.back()->setTimeout(std::chrono::seconds(10));
      contexts.back()->createAndConnectAllPairs(
          std::make_shared<rendezvous::PrefixStore>(name, seat.store));
      together.arrive_and_wait();
      if (seat.rank == 0) {
        awaitSignal(contexts.back(), 1);
      } else {
        ::poll(nullptr, 0, 50);  // for rank 0 to fall asleep, and arm
        signal(contexts.back(), 0);
      }
      together.arrive_and_wait();
    }
  });
  EXPECT_LT(now() - before, std::chrono::seconds(5) * slowness());
}

TEST_F(VerbsLimitsTest, WithoutInlineData) {
  FakeDevices devices = plainDevices();
  devices.config.maxInlineBytes = 0;
  start(devices);
  works(3);
}

TEST_F(VerbsLimitsTest, AForkThatCannotBePreparedForIsNoError) {
  start();
  fakeVerbs().fail(FakeCall::kForkInit, ENOSYS);
  works(2);
}

// The fake takes ibv_fork_init for misuse then.
TEST_F(VerbsLimitsTest, WhereTheKernelCopiesAtForksNoRegionIsKeptFromChildren) {
  FakeDevices devices = plainDevices();
  devices.config.kernelCopiesAtForks = true;
  start(devices);
  works(2);
}

TEST_F(VerbsLimitsTest, EveryMtuOfTwoSidesMeetsAtTheSmaller) {
  for (const int mtu : {256, 1024, 4096}) {
    FakeDevices devices = plainDevices();
    devices.attr.mtu = mtu;
    start(devices);
    const DeviceMaker small = fakeVerbsDevices(devices);
    devices.attr.mtu = 0;
    const DeviceMaker own = fakeVerbsDevices(devices);
    std::atomic<int> made{0};
    maker_ = [&] { return made++ == 0 ? small() : own(); };
    works(2);
  }
}

TEST_F(VerbsLimitsTest, InfiniBandIsAddressedByLid) {
  FakeDevices devices = plainDevices();
  devices.config.ports[0].ethernet = false;
  devices.config.ports[0].lid = 7;
  start(devices);
  works(2);
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
