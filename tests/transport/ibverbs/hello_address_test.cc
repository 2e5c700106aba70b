// An address that a port loses between the hellos and the link that they lead
// to.
#include "transport/ibverbs/factory.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gloo/common/error.h"
#include "tests/support/fake_verbs/fake_verbs.h"
#include "transport/ibverbs/endpoint.h"
#include "transport/ibverbs/poller.h"

GLOO_NAMESPACE_BEGIN
namespace transport::ibverbs {
namespace {

using test::FakePort;
using testing::HasSubstr;

class VerbsAddressOfAHelloTest : public testing::Test {
 protected:
  struct Deaf : base::LinkHandler {
    char* onPayload(const base::FrameHeader&) override { return nullptr; }
    void onFrame(const base::FrameHeader&, const char*) override {}
    void onBound(uint32_t, uint64_t, const char*, size_t) override {}
    void onWritten(uint32_t) override {}
    void onComplete(void*) override {}
    void onLost(internal::Cause, bool) override {}
  };

  // Why neither of two ends becomes a link when the port is like `now` by then.
  static void expectRefusal(const FakePort& before, const FakePort& now,
                            std::optional<ibv_event_type> event,
                            const std::string& text) {
    test::FakeVerbsConfig config;
    config.ports = {before};
    test::FakeVerbs fake(config);
    base::ProgressDomain domain;
    const auto lock = domain.lock();
    auto poller = std::make_unique<VerbsPoller>(attr());
    VerbsPoller& polled = *poller;
    VerbsFactory factory(domain, std::move(poller));
    const auto caller = factory.prepare(1);
    base::Hello called;
    called.blob = caller->blob();
    const auto answer = factory.answer(1, called);
    base::Hello answered;
    answered.blob = answer->blob();
    fake.replacePort(1, now);
    if (event) {
      fake.raise(*event);
      while (fake.pendingEvents() > 0) {
        polled.poll();
      }
    }
    expectRefusal(*answer, called, text);
    expectRefusal(*caller, answered, text);
  }

 private:
  static void expectRefusal(base::PendingLink& end, const base::Hello& theirs,
                            const std::string& text) {
    Deaf handler;
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    const base::UniqueFd other(sockets[1]);
    try {
      (void)end.complete(base::UniqueFd(sockets[0]), theirs, handler);
      ADD_FAILURE() << "a link was made";
    } catch (const IoException& e) {
      EXPECT_THAT(e.what(), HasSubstr(text));
    }
  }
};

FakePort infiniband(uint16_t lid) {
  FakePort port;
  port.ethernet = false;
  port.lid = lid;
  return port;
}

const char* const kNewLid =
    "port 1 of RDMA device fake0 has LID 9 now, and no longer 7";

TEST_F(VerbsAddressOfAHelloTest, ALidThatHasChangedSinceIsNamed) {
  expectRefusal(infiniband(7), infiniband(9), IBV_EVENT_LID_CHANGE, kNewLid);
}

TEST_F(VerbsAddressOfAHelloTest, ALidThatHasChangedWithoutAWordIsNamed) {
  expectRefusal(infiniband(7), infiniband(9), std::nullopt, kNewLid);
}

// Even if others have one that would do as well.
TEST_F(VerbsAddressOfAHelloTest, AGidThatIsGoneSinceIsNamed) {
  FakePort now;
  now.addresses = {"fe80::1", "::ffff:10.0.0.2"};
  expectRefusal({}, now, IBV_EVENT_GID_CHANGE,
                "has lost its GID 3: ::ffff:10.0.0.1");
}

// ---- Peers on InfiniBand that no packet would reach.

class VerbsFabricTest : public testing::Test {
 protected:
  // What an end says of one whose port is like `other`; empty: they connect.
  static std::string refusal(const FakePort& one, const FakePort& other,
                             int pkeyIndex = -1) {
    test::FakeVerbsConfig config;
    config.ports = {one};
    test::FakeVerbs fake(config);
    attr wanted;
    wanted.pkeyIndex = pkeyIndex;
    VerbsPoller first(wanted);
    Endpoint end(first, shapeFor(first.adapter(), 1));
    fake.replacePort(1, other);
    VerbsPoller second(wanted);
    const Endpoint peer(second, shapeFor(second.adapter(), 1));
    try {
      end.connect(peer.address());
      return std::string();
    } catch (const IoException& e) {
      return e.what();
    }
  }
};

FakePort inPartitions(std::vector<uint16_t> keys) {
  FakePort port = infiniband(7);
  port.partitions = std::move(keys);
  return port;
}

TEST_F(VerbsFabricTest, TheFirstPartitionOfAFullMember) {
  EXPECT_EQ(refusal(inPartitions({0x7fff, 0, 0x8001, 0x8002}),
                    inPartitions({0x8001})),
            "");
}

TEST_F(VerbsFabricTest, TheFirstOfALimitedOneOnly) {
  EXPECT_EQ(refusal(inPartitions({0, 0x0001, 0x7fff}), inPartitions({0x8001})),
            "");
}

TEST_F(VerbsFabricTest, ThePartitionThatIsAskedFor) {
  const FakePort two = inPartitions({0x8001, 0x8002});
  EXPECT_EQ(refusal(two, two, 1), "");
  EXPECT_THAT(refusal(two, inPartitions({0x8002, 0x8003}), 1),
              HasSubstr("0x8002, here, and 0x8003"));
}

TEST_F(VerbsFabricTest, APartitionThatThePortIsInByNow) {
  test::FakeVerbsConfig config;
  config.ports = {inPartitions({0x8001})};
  test::FakeVerbs fake(config);
  VerbsPoller poller{attr()};
  const Shape shape = shapeFor(poller.adapter(), 1);
  const Endpoint before(poller, shape);
  EXPECT_EQ(before.address().partition, 0x8001);
  EXPECT_EQ(before.hint(), "");
  fake.replacePort(1, inPartitions({0x7fff, 0x8002}));
  fake.raise(IBV_EVENT_PKEY_CHANGE);
  while (fake.pendingEvents() > 0) {
    poller.poll();
  }
  EXPECT_EQ(Endpoint(poller, shape).address().partition, 0x8002);
  EXPECT_THAT(before.hint(), HasSubstr("table of partitions has changed"));
}

TEST_F(VerbsFabricTest, DifferentPartitions) {
  EXPECT_THAT(refusal(inPartitions({0x8001}), inPartitions({0x8002})),
              HasSubstr("in different InfiniBand partitions (0x8001, here, and "
                        "0x8002)"));
}

TEST_F(VerbsFabricTest, TwoLimitedMembers) {
  EXPECT_THAT(refusal(inPartitions({0x7fff}), inPartitions({0x7fff})),
              HasSubstr("limited members"));
}

TEST_F(VerbsFabricTest, DifferentSubnets) {
  FakePort one = infiniband(7);
  one.addresses = {"fec0::7"};
  EXPECT_THAT(refusal(one, infiniband(7)),
              HasSubstr("different InfiniBand subnets"));
  EXPECT_EQ(refusal(one, one), "");
}

// ---- What no device says.

TEST(QpAddress, TooShortMessagesAreRefused) {
  QpAddress address;
  address.mtu = IBV_MTU_1024;
  address.qpn = 1;
  address.receives = 8;
  address.creditBytes = 1024;
  address.partition = 0x8001;
  address.maxMessage = QpAddress::kLeastMaxMessage;
  EXPECT_EQ(decodeQpAddress(encode(address)).partition, 0x8001);
  address.maxMessage--;
  EXPECT_THROW(decodeQpAddress(encode(address)), IoException);
}

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
