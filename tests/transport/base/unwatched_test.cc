// Where the system lets a user watch no more sockets
// (fs.epoll.max_user_watches): who calls says so, at once, and nothing is left
// open that nobody listens to.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>

#include <cerrno>
#include <functional>
#include <string>

#include "tests/support/process_group.h"
#include "tests/support/refuse_calls.h"
#include "tests/transport/base/loopback.h"
#include "transport/base/connector.h"
#include "transport/base/lifeline.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

using namespace transport::base;  // NOLINT: everything here is about it
using std::chrono::seconds;

void inChild(const std::function<void()>& body) {
  ProcessGroup group(1, [&](Child&) { body(); });
  group.joinAll();
}

void watchNoMore() {
  refuseCall(SYS_epoll_ctl, SECCOMP_RET_ERRNO | ENOSPC,
             {{1, BPF_JEQ, EPOLL_CTL_ADD}}, Refused::kAllThreads);
}

bool isRemedy(const std::string& text) {
  return text.find("fs.epoll.max_user_watches") != std::string::npos;
}

// Two ends of a connection.
struct Connection {
  Connection() {
    const UniqueFd listener = listenOn(loopback(), 8);
    startConnect(localAddress(listener.get()), &ours);
    pollfd ready{listener.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 20'000), 1);
    EXPECT_EQ(acceptFrom(listener.get(), &theirs), 0);
  }
  // And not a byte has come.
  bool closed() const {
    pollfd ready{ours.get(), POLLIN, 0};
    char byte = 0;
    return ::poll(&ready, 1, 20'000) == 1 &&
           ::recv(ours.get(), &byte, 1, 0) == 0;
  }
  UniqueFd ours;
  UniqueFd theirs;
};

struct Caller final : Party {
  Hello onHello(const Hello&) override { return {}; }
  void onConnected(const Hello&, UniqueFd, uint64_t) override { over = true; }
  void onConnectFailed(uint64_t, Failure why, const std::string& how) override {
    over = true;
    failure = why;
    text = how;
  }
  bool over = false;
  Failure failure = Failure::kUnreachable;
  std::string text;
};

TEST(UnwatchedTest, ACallFailsAndNamesTheLimit) {
  inChild([] {
    ProgressDomain domain;
    auto lock = domain.lock();
    Caller caller;
    {
      Connector connector(domain, loopback());
      connector.addParty(1, caller);
      watchNoMore();
      const UniqueFd listener = listenOn(loopback(), 8);
      connector.connect(1, localAddress(listener.get()), Hello{}, 5,
                        seconds(20));
      EXPECT_TRUE(domain.wait(
          lock, [&] { return caller.over; }, Deadline::after(seconds(10))));
    }
    EXPECT_EQ(caller.failure, Party::Failure::kShort);
    EXPECT_TRUE(isRemedy(caller.text)) << caller.text;
  });
}

TEST(UnwatchedTest, ACallerIsHungUpOn) {
  inChild([] {
    ProgressDomain domain;
    auto lock = domain.lock();
    Connector connector(domain, loopback());
    watchNoMore();
    UniqueFd caller;
    startConnect(connector.endpoint(), &caller);
    EXPECT_TRUE(domain.wait(
        lock,
        [&] {
          char byte = 0;
          return ::recv(caller.get(), &byte, 1, MSG_DONTWAIT) == 0;
        },
        Deadline::after(seconds(3))));  // a caller that is silent has 5 s
  });
}

TEST(UnwatchedTest, ALifelineThatCannotBeCalledNamesTheLimit) {
  inChild([] {
    const UniqueFd listener = listenOn(loopback(), 8);
    auto& lifelines = Lifelines::instance();
    watchNoMore();
    lifelines.join(7, 70, 0, 2, {{1, 71, localAddress(listener.get()), 0}},
                   [](const internal::Cause&) {});
    const Lifelines::Unmet unmet = lifelines.unmet(7, 70);
    EXPECT_EQ(unmet.ranks, std::vector<int>{1});
    EXPECT_TRUE(unmet.isShort);
    EXPECT_TRUE(isRemedy(unmet.trouble)) << unmet.trouble;
    lifelines.leave(7, 70);
  });
}

// Before a word is said on it: else the peer would take the end for a death.
TEST(UnwatchedTest, ALifelineThatCannotBeTakenIsClosed) {
  inChild([] {
    const UniqueFd listener = listenOn(loopback(), 8);
    auto& lifelines = Lifelines::instance();
    lifelines.join(7, 71, 1, 2, {{0, 70, localAddress(listener.get()), 0}},
                   [](const internal::Cause&) {});
    Connection connection;
    watchNoMore();
    Hello hello;
    hello.purpose = Purpose::kLifeline;
    hello.srcRank = 0;
    hello.srcNonce = 70;
    hello.dstNonce = 71;
    hello.worldNonce = 7;
    lifelines.adopt(std::move(connection.theirs), hello);
    EXPECT_TRUE(connection.closed());
    EXPECT_TRUE(isRemedy(lifelines.unmet(7, 71).trouble));
    lifelines.leave(7, 71);
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
