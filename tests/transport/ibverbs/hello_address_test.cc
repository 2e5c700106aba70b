// An address that a port loses between the hellos and the link that they lead
// to.
#include "transport/ibverbs/factory.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gloo/common/error.h"
#include "tests/support/fake_verbs/fake_verbs.h"

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

}  // namespace
}  // namespace transport::ibverbs
GLOO_NAMESPACE_END
