// A port whose address changes while its device is in use: what is connected
// afterwards uses the new one.
#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <barrier>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "gloo/rendezvous/prefix_store.h"
#include "tests/transport/contract/contract.h"
#include "tests/transport/ibverbs/fake_devices.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string gidOf(const ibv_ah_attr& path) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, path.grh.dgid.raw, text, sizeof(text));
  return text;
}

class VerbsReaddressTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(mistakesOfFakeVerbs(), ""); }

  // Two ranks connect, the port changes, which `event` tells; then they connect
  // another context. Returns what that throws.
  std::string reconnect(const FakePort& before, const FakePort& after,
                        ibv_event_type event) {
    FakeDevices devices = plainDevices();
    devices.config.ports[0] = before;
    devices.attr.index = index_;
    maker_ = fakeVerbsDevices(devices);
    std::string texts;
    std::mutex mutex;
    spawnSeats(Mode::kThreads, 2, [&](Seat& seat) {
      const auto device = maker_();
      const ContextPtr first = connect(seat, "first", device);
      together_.arrive_and_wait();
      if (seat.rank == 0) {
        change(after, event);
      }
      together_.arrive_and_wait();
      try {
        const ContextPtr second = connect(seat, "second", device);
        together_.arrive_and_wait();
        if (seat.rank == 0) {
          path_ = fakeVerbs().path(fakeVerbs().queuePairs().back());
        }
        together_.arrive_and_wait();
      } catch (const IoException& e) {
        const std::lock_guard<std::mutex> lock(mutex);
        texts += e.what();
      }
    });
    return texts;
  }

  // The second context's, once the port is like `after`.
  void expectGid(const FakePort& after, const std::string& gid, int index) {
    EXPECT_EQ(reconnect({}, after, IBV_EVENT_GID_CHANGE), "");
    EXPECT_EQ(gidOf(path_), gid);
    EXPECT_EQ(path_.grh.sgid_index, index);
  }

  int index_ = -1;      // that is asked for
  ibv_ah_attr path_{};  // of the second context

 private:
  static ContextPtr connect(const Seat& seat, const std::string& name,
                            const std::shared_ptr<transport::Device>& device) {
    const ContextPtr context = device->createContext(seat.rank, seat.size);
    context->setTimeout(contextTimeout());
    context->createAndConnectAllPairs(
        std::make_shared<rendezvous::PrefixStore>(name, seat.store));
    return context;
  }

  // Returns when both devices' own threads have taken the event.
  static void change(const FakePort& after, ibv_event_type event) {
    fakeVerbs().replacePort(1, after);
    fakeVerbs().raise(event);
    while (fakeVerbs().pendingEvents() > 0) {
      std::this_thread::yield();
    }
  }

  DeviceMaker maker_;
  std::barrier<> together_{2};
};

TEST_F(VerbsReaddressTest, ANewLid) {
  FakePort before;
  before.ethernet = false;
  before.lid = 7;
  FakePort after = before;
  after.lid = 9;
  EXPECT_EQ(reconnect(before, after, IBV_EVENT_LID_CHANGE), "");
  EXPECT_EQ(path_.dlid, 9);
}

TEST_F(VerbsReaddressTest, ANewLidAfterThePortWasDown) {
  FakePort before;
  before.ethernet = false;
  before.lid = 7;
  FakePort after = before;
  after.lid = 9;
  EXPECT_EQ(reconnect(before, after, IBV_EVENT_PORT_ACTIVE), "");
  EXPECT_EQ(path_.dlid, 9);
}

TEST_F(VerbsReaddressTest, AnotherGidInThePlaceOfTheChosenOne) {
  FakePort after;
  after.addresses = {"fe80::1", "::ffff:10.0.0.2"};
  EXPECT_EQ(reconnect({}, after, IBV_EVENT_GID_CHANGE), "");
  EXPECT_EQ(gidOf(path_), "::ffff:10.0.0.2");
}

// An address that is removed and given back, while queue pairs still use its
// old place.
TEST_F(VerbsReaddressTest, TheSameGidAtAnotherIndex) {
  FakePort after;
  after.addresses = {"fe80::1", "", "::ffff:10.0.0.1"};
  expectGid(after, "::ffff:10.0.0.1", 5);
}

// A VLAN's interface has the link-local address of the one below it.
TEST_F(VerbsReaddressTest, AGidThatIsThereTwiceKeepsItsIndex) {
  index_ = 3;
  FakePort twice;
  twice.addresses = {"fe80::1", "fe80::1"};
  EXPECT_EQ(reconnect(twice, twice, IBV_EVENT_GID_CHANGE), "");
  EXPECT_EQ(path_.grh.sgid_index, 3);
}

TEST_F(VerbsReaddressTest, AnotherGidAtAnotherIndex) {
  FakePort after;
  after.addresses = {"fe80::1", "fe80::2", "::ffff:10.0.0.2"};
  expectGid(after, "::ffff:10.0.0.2", 5);
}

TEST_F(VerbsReaddressTest, AGidOfAnotherVersionInPlaceOfTheChosenOne) {
  FakePort after;
  after.versions = {2, 1};
  expectGid(after, "::ffff:10.0.0.1", 2);
}

TEST_F(VerbsReaddressTest, OnlyGidsOfAnotherVersion) {
  FakePort after;
  after.versions = {1};
  after.addresses = {"fe80::1", "fe80::2", "fe80::3", "::ffff:10.0.0.1"};
  EXPECT_THAT(reconnect({}, after, IBV_EVENT_GID_CHANGE),
              HasSubstr("has lost its GID 3: ::ffff:10.0.0.1, RoCE v2"));
}

TEST_F(VerbsReaddressTest, AnIndexThatWasAskedForIsKept) {
  index_ = 3;
  FakePort after;
  after.versions = {2, 1};
  after.addresses = {"::ffff:10.0.0.2", "::ffff:10.0.0.3"};
  expectGid(after, "::ffff:10.0.0.3", 3);
}

TEST_F(VerbsReaddressTest, AGidThatIsGoneIsNamed) {
  FakePort after;
  after.addresses = {"fe80::1"};
  EXPECT_THAT(
      reconnect({}, after, IBV_EVENT_GID_CHANGE),
      AllOf(HasSubstr("has lost its GID 3: ::ffff:10.0.0.1"),
            HasSubstr("was the address of its network interface removed?")));
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
