// A rank on another host comes to harm. Guest 1 has the victim, guest 0 the one
// who is to know.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <thread>

#include "gloo/common/error.h"
#include "gloo/common/string.h"
#include "gloo/rendezvous/context.h"
#include "tests/multiprocess/job.h"
#include "tests/support/hosts.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Promised is a second; two emulated hosts share the processors of one.
constexpr seconds kKnown(3);

class TwoHostsTest : public ::testing::Test {
 protected:
  using Body = std::function<void(Child&, const std::shared_ptr<Context>&)>;

  TwoHostsTest() : place_(nameOfUse()) { serveMeetingPlace(); }

  void SetUp() override {
    ASSERT_EQ(hosts().count, 2) << "to be run in two guests";
  }

  static bool isVictims() { return hosts().own == 1; }

  std::shared_ptr<Context> connect(milliseconds timeout) const {
    auto context = std::make_shared<rendezvous::Context>(hosts().own, 2);
    context->setTimeout(seconds(15) * patience());
    auto device = chosenTransport(false).make();
    context->connectFullMesh(meetingPlace(place_), device);
    context->setTimeout(timeout);
    return context;
  }

  void say(const std::string& what) const {
    meetingPlace(place_)->set(what, {'1'});
  }
  void await(const std::string& what) const {
    meetingPlace(place_)->wait({what}, seconds(60) * patience());
  }

  // The victim connects, and comes to harm when guest 0 waits for it.
  void harm(int signal) const {
    ProcessGroup group(1, [this](Child& child) {
      const auto context = connect(seconds(60));
      child.say("connected");
      child.hear();
    });
    ASSERT_EQ(group.hear(0, seconds(60) * patience()), "connected");
    await("waiting");
    say("harmed");
    group.signal(0, signal);
    await("known");
    group.signal(0, SIGKILL);
    group.join(0, seconds(5));
  }

  // What the wait for the victim ends with, and how long after the harm.
  Failure failure(milliseconds timeout) const {
    Failure failure;
    const auto context = connect(timeout);
    say("waiting");
    std::chrono::nanoseconds harmed{0};
    std::thread clock([&] {
      await("harmed");
      harmed = now();
    });
    try {
      recvFrom(*context, 1, 1, 1 << 20);
      failure.text = "nothing has failed";
    } catch (const TimeoutException& e) {
      failure.type = "Timeout";
      failure.text = e.what();
    } catch (const PeerLostException& e) {
      failure.type = "PeerLost";
      failure.text = e.what();
    }
    const auto at = now();
    clock.join();
    failure.at = at - harmed;
    say("known");
    return failure;
  }

 private:
  const std::string place_;
};

TEST_F(TwoHostsTest, AProcessOnTheOtherOneIsKilled) {
  if (isVictims()) {
    harm(SIGKILL);
    return;
  }
  const Failure failure = this->failure(seconds(60));
  EXPECT_EQ(failure.type, "PeerLost") << failure.text;
  EXPECT_TRUE(failure.names("rank 1")) << failure.text;
  EXPECT_LT(failure.at, kKnown) << failure.text;
}

TEST_F(TwoHostsTest, AProcessOnTheOtherOneIsStopped) {
  if (isVictims()) {
    harm(SIGSTOP);
    return;
  }
  const Failure failure = this->failure(seconds(4));
  EXPECT_EQ(failure.type, "Timeout") << failure.text;
  EXPECT_TRUE(failure.names("rank 1")) << failure.text;
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
