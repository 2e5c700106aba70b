// Pairs whose port loses the GID that the peer was told.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/process_group.h"
#include "tests/transport/ibverbs/harm.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace std::chrono_literals;  // NOLINT
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// Returns when the devices' threads have taken the event.
void change(FakeVerbs& fake, const FakePort& now, ibv_event_type event) {
  fake.replacePort(1, now);
  fake.raise(event);
  while (fake.pendingEvents() > 0) {
    std::this_thread::yield();
  }
}

FakePort withAddresses(std::vector<std::string> addresses) {
  FakePort port;
  port.addresses = std::move(addresses);
  return port;
}

class VerbsLostAddressTest : public VerbsFailureTest {
 protected:
  // What both ranks hear, who wait for each other, when the port is like `now`.
  void expectTheEnd(const FakePort& now) {
    const auto begin = steady_clock::now();
    const Texts both =
        texts([&](FakeVerbs& fake) { change(fake, now, IBV_EVENT_GID_CHANGE); },
              &wait, devices_);
    EXPECT_LT(steady_clock::now() - begin, 5s * slowness());
    // One of them may have said it first.
    expectBoth(both, AllOf(HasSubstr("port 1 of RDMA device fake0 has lost its "
                                     "GID 3: ::ffff:10.0.0.1, RoCE v2"),
                           ContainsRegex("rank [01]"),
                           HasSubstr("ibverbs fake0 to 127.0.0.1")));
  }

  // Messages pass, for that long after the harm.
  void expectToGoOn(const Harm& harm, milliseconds time) {
    const Work exchange = [&](const ContextPtr& context) {
      const int peer = 1 - context->rank;
      const auto end = steady_clock::now() + time;
      Message out(context, 1);
      Message in(context, 1);
      do {
        out.bytes[0] = steady_clock::now() < end ? 1 : 0;
        in.buffer->recv(peer, 1);
        out.buffer->send(peer, 1);
        in.buffer->waitRecv();
        out.buffer->waitSend();
      } while (in.bytes[0] != 0 || out.bytes[0] != 0);
    };
    expectBoth(texts(harm, exchange, devices_), testing::IsEmpty());
  }

  FakeDevices devices_ = asynchronousDevices(5);
};

TEST_F(VerbsLostAddressTest, APairWhoseGidIsGoneEndsAtOnceByName) {
  expectTheEnd(withAddresses({"fe80::1"}));
}

TEST_F(VerbsLostAddressTest, APairInWhoseGidsPlaceIsAnotherEnds) {
  expectTheEnd(withAddresses({"fe80::1", "::ffff:10.0.0.2"}));
}

TEST_F(VerbsLostAddressTest, APairWhoseGidIsOfAnotherVersionEnds) {
  FakePort now;
  now.versions = {1};
  expectTheEnd(now);
}

// Adapters that keep the address itself go on.
TEST_F(VerbsLostAddressTest, APairWhoseGidHasAnotherIndexGoesOn) {
  devices_.attr.gidLostTime = 0ms;
  expectToGoOn(
      [](FakeVerbs& fake) {
        change(fake, withAddresses({"fe80::1", "", "::ffff:10.0.0.1"}),
               IBV_EVENT_GID_CHANGE);
      },
      20ms);
}

TEST_F(VerbsLostAddressTest, AGidThatIsGivenBackInTimeDisturbsNobody) {
  devices_.attr.gidLostTime = 200ms * slowness();
  expectToGoOn(
      [](FakeVerbs& fake) {
        change(fake, withAddresses({"fe80::1"}), IBV_EVENT_GID_CHANGE);
        change(fake, FakePort(), IBV_EVENT_GID_CHANGE);
      },
      300ms * slowness());
}

TEST_F(VerbsLostAddressTest, AGidIsMissingNoLongerThanItsPortMayBeDown) {
  devices_.attr.gidLostTime = 0ms;
  expectToGoOn(
      [](FakeVerbs& fake) {
        change(fake, FakePort(), IBV_EVENT_PORT_ERR);
        change(fake, withAddresses({"fe80::1"}), IBV_EVENT_GID_CHANGE);
        change(fake, withAddresses({"fe80::1"}), IBV_EVENT_PORT_ACTIVE);
        change(fake, FakePort(), IBV_EVENT_GID_CHANGE);
      },
      20ms);
}

// Buffers are made by the caller's threads, ports looked at by the device's.
TEST_F(VerbsLostAddressTest, BuffersAreMadeWhileThePortChanges) {
  std::atomic<bool> changed{false};
  const Harm changes = [&](FakeVerbs& fake) {
    for (int i = 0; i < 50; i++) {
      change(fake, FakePort(), IBV_EVENT_GID_CHANGE);
    }
    changed = true;
  };
  const Work makeBuffers = [&](const ContextPtr& context) {
    while (!changed) {
      const Message message(context, 1);
    }
  };
  expectBoth(texts(changes, makeBuffers, devices_), testing::IsEmpty());
}

TEST_F(VerbsLostAddressTest, ARequestThatFailsTellsThatItsGidHasMoved) {
  const Texts both = texts(
      [](FakeVerbs& fake) {
        change(fake, withAddresses({"fe80::1", "", "::ffff:10.0.0.1"}),
               IBV_EVENT_GID_CHANGE);
        fake.failNextSend(firstQp(fake), IBV_WC_RETRY_EXC_ERR);
      },
      &exchangeForEver, devices_);
  expectBoth(both,
             HasSubstr("its GID 5: ::ffff:10.0.0.1, RoCE v2, had index 3"));
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
